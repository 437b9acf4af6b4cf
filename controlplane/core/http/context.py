"""What every template may show of this installation."""

from django.conf import settings
from django.http import HttpRequest


def installation(request: HttpRequest) -> dict[str, object]:
    """Its environment's name, and whether that is the one that looks different from all others."""
    return {
        "environment_name": settings.ENVIRONMENT_NAME,
        "is_production": settings.ENVIRONMENT_NAME.lower() == "production",
    }
