"""`manage.py changepassword`: refused, because Django's command writes no audit entry."""

from controlplane.core.shell import ReplacedCommand


class Command(ReplacedCommand):
    help = "Setting a password is audited here: use `manage.py person password NAME`."
