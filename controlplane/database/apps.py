from django.apps import AppConfig
from django.conf import settings


class DatabaseConfig(AppConfig):
    name = "controlplane.database"
    label = "database"
    verbose_name = "Database"

    def ready(self) -> None:
        from . import (
            checks,  # noqa: F401 - registers itself
            lock_holders,
        )

        if not settings.AS_OWNER:  # Migrations may wait, and terminate no other session.
            lock_holders.install()
