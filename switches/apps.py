from importlib import import_module

from django.apps import AppConfig


class SwitchesConfig(AppConfig):
    name = "switches"

    def ready(self) -> None:
        # Registers the handlers of approved requests.
        import_module("switches.services")
