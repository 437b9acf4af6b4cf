"""`manage.py changepassword`: refused, because Django's bypasses the audit trail."""

from controlplane.core.shell import ReplacedCommand


class Command(ReplacedCommand):
    help = "Setting a password is audited here: use `manage.py person password NAME`."
