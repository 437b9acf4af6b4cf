"""`manage.py createsuperuser`: refused, because Django's bypasses the audit trail."""

from controlplane.core.shell import Instead


class Command(Instead):
    help = "Making an admin is audited here: use `manage.py person create NAME --role admin`."
