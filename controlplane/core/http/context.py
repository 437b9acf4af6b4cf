"""Template context processor for the installation's environment and the names of its cookies."""

from django.conf import settings
from django.http import HttpRequest


def describe_installation(request: HttpRequest) -> dict[str, object]:
    return {
        "environment_name": settings.ENVIRONMENT_NAME,
        "is_production": settings.ENVIRONMENT_NAME.lower() == "production",
        "has_siblings": bool(settings.SIBLINGS),
        "csrf_cookie": settings.CSRF_COOKIE_NAME,
    }
