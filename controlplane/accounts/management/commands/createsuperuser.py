"""`manage.py createsuperuser`: refused, because Django's command writes no audit entry."""

from controlplane.core.shell import ReplacedCommand


class Command(ReplacedCommand):
    help = (
        "To create an admin with an audit entry, use `manage.py person create NAME --role admin`."
    )
