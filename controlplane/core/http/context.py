"""Template context processor for the name of the installation's environment."""

from django.conf import settings
from django.http import HttpRequest


def describe_installation(request: HttpRequest) -> dict[str, object]:
    return {
        "environment_name": settings.ENVIRONMENT_NAME,
        "is_production": settings.ENVIRONMENT_NAME.lower() == "production",
    }
