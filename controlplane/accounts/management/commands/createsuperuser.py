"""`manage.py createsuperuser` goes past the audit trail: ours says what to use instead."""

from controlplane.core.shell import Instead


class Command(Instead):
    help = "Making an admin is audited here: use `manage.py person create NAME --role admin`."
