"""A Django service in one file, with reports that a kill switch can stop.

SWITCHGEAR_URL=… SWITCHGEAR_TOKEN=… gunicorn --preload --workers 4 django_app:application
"""

import os
import secrets
from collections.abc import Callable

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from switchgear import SwitchEngaged, Switchgear

settings.configure(
    SECRET_KEY=os.environ.get("SECRET_KEY") or secrets.token_hex(),
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    MIDDLEWARE=[f"{__name__}.SayStopped"],
)

gear = Switchgear.from_env(service="reports-api")  # Works in each forked process.


class SayStopped:
    """Middleware that responds with status 503 if a switch stopped the view's call."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, _request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, SwitchEngaged):
            return None
        answer = {"detail": "temporarily disabled", "switch": error.switch}
        return JsonResponse(answer, status=503)


@gear.guard(
    feature="report",
    segment=lambda request: request.GET.get("department"),
    targeting_key=lambda request: request.GET.get("user"),
)
def report(request: HttpRequest) -> HttpResponse:
    return JsonResponse({"report": "All is well.", "worker": os.getpid()})


urlpatterns = [path("report", report)]
application = get_wsgi_application()
