"""Template context about this installation."""

from django.conf import settings
from django.http import HttpRequest


def installation(request: HttpRequest) -> dict[str, object]:
    """Return the environment's name and whether it is production, which is highlighted."""
    return {
        "environment_name": settings.ENVIRONMENT_NAME,
        "is_production": settings.ENVIRONMENT_NAME.lower() == "production",
    }
