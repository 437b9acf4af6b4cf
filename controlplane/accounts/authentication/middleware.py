"""Middleware that keeps people without a required second factor out of the console."""

from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from controlplane.accounts.models.people import User
from controlplane.core.errors import Forbidden
from controlplane.core.http import pages
from controlplane.core.http.requests import is_api

from . import factors

OPEN = ("/preferences/security/", "/confirm/", "/sign-out/", "/sign-in/", "/theme/", "/static/",
        "/health/", "/metrics")  # fmt: skip


class SecondFactorMiddleware:
    """Middleware that redirects people who lack a required second factor to set one up."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if (
            not settings.ENTRY.second_factor_roles
            or request.path.startswith(OPEN)
            or settings.SESSION_COOKIE_NAME not in request.COOKIES
            or not isinstance(user := cast(Any, request.user), User)
            or not factors.is_required(user)
            or factors.has_factor(user)
        ):
            return self.get_response(request)
        if is_api(request):
            return pages.render_error(request, Forbidden(factors.SET_UP_FIRST))
        if request.headers.get("HX-Request"):
            return HttpResponse(status=204, headers={"HX-Redirect": "/preferences/security/"})
        return redirect("security_page")
