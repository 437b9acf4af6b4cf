from django.apps import AppConfig


class BreakersConfig(AppConfig):
    name = "breakers"
