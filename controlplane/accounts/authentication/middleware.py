"""Middleware that keeps people out until their password and second factor are as required."""

from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from controlplane.accounts.models.people import User
from controlplane.core.errors import Forbidden
from controlplane.core.http import pages
from controlplane.core.http.requests import is_api

from . import factors, password_changes

OPEN = ("/preferences/new-password/", "/sign-out/", "/sign-in/", "/theme/", "/static/", "/health/",
        "/metrics")  # fmt: skip
OPEN_FOR_FACTORS = (*OPEN, "/preferences/security/", "/confirm/")


class PasswordChangeMiddleware:
    """Middleware that redirects people whose password someone else set to choose a new one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = _find_user(request, OPEN)
        if user is None or not password_changes.is_required(user, request.session):
            return self.get_response(request)
        # A POST can't be resumed, so there is no page to return to.
        wanted = request.get_full_path() if request.method == "GET" else "/"
        if request.headers.get("HX-Request"):
            wanted = cast(Any, request).htmx.current_url_abs_path or "/"
        url = f"{reverse('password_new')}?{urlencode({'next': wanted})}"
        return _lead_to(url, request, password_changes.CHOOSE_FIRST)


class SecondFactorMiddleware:
    """Middleware that redirects people who lack a required second factor to set one up."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if (
            not settings.ENTRY.second_factor_roles
            or (user := _find_user(request, OPEN_FOR_FACTORS)) is None
            or not factors.is_required(user)
            or factors.has_factor(user)
        ):
            return self.get_response(request)
        return _lead_to(reverse("security_page"), request, factors.SET_UP_FIRST)


def _find_user(request: HttpRequest, open_paths: tuple[str, ...]) -> User | None:
    """Return the signed-in person, but None if the path starts with one of `open_paths`."""
    if request.path.startswith(open_paths) or settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return None
    return user if isinstance(user := cast(Any, request.user), User) else None


def _lead_to(url: str, request: HttpRequest, detail: str) -> HttpResponse:
    """Redirect the browser to `url`; refuse an API request with `detail`."""
    if is_api(request):
        return pages.render_error(request, Forbidden(detail))
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"HX-Redirect": url})
    return redirect(url)
