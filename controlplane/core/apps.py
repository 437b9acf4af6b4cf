from django.apps import AppConfig
from django.conf import settings


class CoreConfig(AppConfig):
    name = "controlplane.core"
    label = "core"
    verbose_name = "Core"

    def ready(self) -> None:
        from . import lock_holders

        if not settings.AS_OWNER:  # Migrations may wait, and terminate no other session.
            lock_holders.install()
