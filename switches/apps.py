from importlib import import_module

from django.apps import AppConfig


class SwitchesConfig(AppConfig):
    name = "switches"

    def ready(self) -> None:
        from controlplane.core import registered_sql

        # Registers the handlers of approved requests.
        import_module("switches.services")
        registered_sql.PUBLISHED_HEAD.register(
            "SELECT epoch, version, began_version, published_at"
            " FROM switches_publication WHERE id = 1"
        )
        registered_sql.USE_QUERIES["switches_episode"] = (
            "SELECT EXISTS (SELECT FROM switches_episode)"
        )
