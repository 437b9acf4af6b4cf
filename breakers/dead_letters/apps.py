from django.apps import AppConfig


class DeadLettersConfig(AppConfig):
    """An app without models, so that Django finds its modules; the models belong to `breakers`."""

    name = "breakers.dead_letters"
    label = "dead_letters"
