from django.apps import AppConfig


class CoreConfig(AppConfig):
    name = "controlplane.core"
    label = "core"
    verbose_name = "Core"

    def ready(self) -> None:
        from controlplane.core import (
            blockers,
            checks,  # noqa: F401 - registers itself
        )
        from controlplane.core.entry import resets  # noqa: F401 - how links get into mails

        blockers.install()
