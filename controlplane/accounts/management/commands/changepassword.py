"""`manage.py changepassword`: refused, because Django's command writes no audit entry."""

from controlplane.core.shell import ReplacedCommand


class Command(ReplacedCommand):
    help = "To set a password with an audit entry, use `manage.py person password NAME`."
