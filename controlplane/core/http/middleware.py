"""Middleware of all Django requests: request id, host check, time zone, errors."""

import time
from collections.abc import Callable
from urllib.parse import quote

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.middleware.common import CommonMiddleware
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin

from controlplane.core import deadline
from controlplane.core.clock import load_time_zone
from controlplane.core.errors import DomainError
from controlplane.core.http import pages, problems, requests

BACKGROUND = "Switchgear-Background"
"""Request header of automatic requests, such as a partial that refreshes every minute."""
ENVIRONMENT = "Switchgear-Environment"
"""Response header with the environment's name, percent-encoded, for API clients."""
SAFE_METHODS = {"GET", "HEAD", "OPTIONS", "TRACE"}
# These paths show no local times, and probes must not wait for a session query.
WITHOUT_TIME_ZONE = ("/api/", "/health/", "/metrics", "/static/")

# Probes use the container's address, which can't be listed in ALLOWED_HOSTS.
BY_ANY_NAME = ("/health/", "/metrics")

GetResponse = Callable[[HttpRequest], HttpResponse]
log = structlog.get_logger(__name__)


class RequestContextMiddleware:
    """Sets the request id of the response, log lines and audit entries; logs mutations."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = requests.set_request_id(request)
        started = time.perf_counter()
        ends = getattr(request, "scope", {}).get(deadline.IN_SCOPE)
        with (
            structlog.contextvars.bound_contextvars(request_id=request_id),
            deadline.limit_writes(ends),
        ):
            response = self._respond(request)
            if request.method not in SAFE_METHODS:
                # Never log headers, bodies or query strings.
                log.info(
                    "request.finished",
                    method=request.method,
                    path=request.path,
                    status=response.status_code,
                    actor=getattr(getattr(request, "actor", None), "label", None),
                    milliseconds=round((time.perf_counter() - started) * 1000),
                )
        response["X-Request-ID"] = request_id
        if request.path.startswith("/api/"):
            response[ENVIRONMENT] = quote(settings.ENVIRONMENT_NAME)
        return response

    def _respond(self, request: HttpRequest) -> HttpResponse:
        # Django's admin would crash on it; our own filters report it.
        if request.path.startswith("/admin/") and "%00" in request.META.get("QUERY_STRING", ""):
            return pages.render_error(request, DomainError("The address has a null character."))
        return self.get_response(request)


class NamedHostMiddleware(CommonMiddleware):
    """Django's check of the Host header, which lets health probes and metrics use any host name."""

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        if request.path.startswith(BY_ANY_NAME):
            return None
        return super().process_request(request)


class PersonTimeZoneMiddleware:
    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        signed_in = settings.SESSION_COOKIE_NAME in request.COOKIES
        if not signed_in or request.path.startswith(WITHOUT_TIME_ZONE):
            return self.get_response(request)
        name = getattr(request.user, "time_zone", settings.TIME_ZONE)
        with timezone.override(load_time_zone(name)):
            return self.get_response(request)


class DomainErrorMiddleware(MiddlewareMixin):
    """Converts exceptions of page views to responses; API views have an exception handler."""

    async_capable = False

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        error = problems.as_domain_error(exception)
        return None if error is None else pages.render_error(request, error)
