from importlib import import_module

from django.apps import AppConfig


class SwitchesConfig(AppConfig):
    name = "switches"

    def ready(self) -> None:
        # Services and ramps import each other, which works only if the services come first.
        import_module("switches.services")
