"""`manage.py createsuperuser`: refused, because Django's command writes no audit entry."""

from controlplane.core.shell import ReplacedCommand


class Command(ReplacedCommand):
    help = "Making an admin is audited here: use `manage.py person create NAME --role admin`."
