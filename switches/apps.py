from importlib import import_module

from django.apps import AppConfig


class SwitchesConfig(AppConfig):
    name = "switches"

    def ready(self) -> None:
        # Registers the actions that approvals carry out.
        import_module("switches.services")
