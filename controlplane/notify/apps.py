from django.apps import AppConfig


class NotifyConfig(AppConfig):
    name = "controlplane.notify"
    label = "notify"
    verbose_name = "Notify"

    def ready(self) -> None:
        from controlplane.accounts.people import deactivation
        from controlplane.core.outbox import router

        from . import routes
        from .targets import usage

        router.register(routes)
        deactivation.register_duties(usage.duties_of)
