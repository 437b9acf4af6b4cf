from django.apps import AppConfig


class DeadLettersConfig(AppConfig):
    """An app that lets Django find the modules of dead letters; its models belong to `breakers`."""

    name = "breakers.dead_letters"
    label = "dead_letters"
