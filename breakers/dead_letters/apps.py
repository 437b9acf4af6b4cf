from django.apps import AppConfig


class DeadLettersConfig(AppConfig):
    """An app of its own for Django's discovery; its tables belong to the app label `breakers`."""

    name = "breakers.dead_letters"
    label = "dead_letters"
