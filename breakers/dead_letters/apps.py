from django.apps import AppConfig


class DeadLettersConfig(AppConfig):
    """Django app for module discovery; its models belong to the app label `breakers`."""

    name = "breakers.dead_letters"
    label = "dead_letters"
