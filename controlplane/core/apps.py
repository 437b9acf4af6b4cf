from django.apps import AppConfig
from django.conf import settings


class CoreConfig(AppConfig):
    name = "controlplane.core"
    label = "core"
    verbose_name = "Core"

    def ready(self) -> None:
        from controlplane.core import (
            authority,
            blockers,
            checks,  # noqa: F401 - registers itself
        )
        from controlplane.core.entry import resets  # noqa: F401 - how links get into mails
        from controlplane.core.people import authority as accounts
        from controlplane.core.people import leaving
        from controlplane.core.targets import usage

        authority.register(accounts)
        leaving.register_duties(usage.duties_of)

        if not settings.AS_OWNER:  # Migrations may wait, and terminate no other session.
            blockers.install()
