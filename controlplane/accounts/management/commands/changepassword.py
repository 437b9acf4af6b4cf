"""`manage.py changepassword` goes past the audit trail: ours says what to use instead."""

from controlplane.core.shell import Instead


class Command(Instead):
    help = "Setting a password is audited here: use `manage.py person password NAME`."
