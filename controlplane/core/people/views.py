"""Signing in and out, and a person's own preferences."""

import math
from datetime import timedelta
from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from axes.helpers import get_cool_off
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.core.browser import PersonRequest, signed_in
from controlplane.core.clock import db_now
from controlplane.core.http.authentication import actor_of
from controlplane.core.http.requests import client_ip, request_id_of
from controlplane.core.people import services, sessions
from controlplane.core.people.forms import PreferencesForm, SignInForm

THEMES = {"light", "dark"}
A_YEAR = 365 * 24 * 3600


class SignIn(LoginView):
    """Throttled by user name and address together, in the database: Redis may be down."""

    template_name = "registration/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # Asked first, so that trying again while locked out does not prolong the wait.
        if not AxesProxyHandler.is_allowed(request, {"username": _typed_name(request)}):
            return locked_out(request)
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        sessions.started(actor=actor_of(self.request), now=db_now())
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        if form.non_field_errors():
            sessions.failed(
                username=form.cleaned_data.get("username", ""),
                request_id=request_id_of(self.request),
                ip=client_ip(self.request),
                now=db_now(),
            )
        response = super().form_invalid(form)
        response.status_code = 422
        return response


def locked_out(
    request: HttpRequest, original_response: object = None, credentials: object = None
) -> HttpResponse:
    """What django-axes answers with after too many failures: until when, in words."""
    last = (
        AccessAttempt.objects.filter(username=_typed_name(request), ip_address=client_ip(request))
        .order_by("-attempt_time")
        .first()
    )
    now = timezone.now()
    cool_off: timedelta = get_cool_off(request) or timedelta(minutes=15)
    until = (last.attempt_time if last else now) + cool_off
    seconds = max(1, math.ceil((until - now).total_seconds()))
    response = render(
        request,
        "registration/locked_out.html",
        {
            "until": until,
            "minutes": math.ceil(seconds / 60),
            "limit": settings.AXES_FAILURE_LIMIT,
            "next": request.POST.get("next", ""),
        },
        status=429,
    )
    response["Retry-After"] = str(seconds)
    add_never_cache_headers(response)
    return response


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session; signing out twice is no error."""
    if request.user.is_authenticated:
        sessions.ended(actor=actor_of(request), now=db_now())
    logout(request)
    messages.success(request, "You are signed out.")
    return redirect(settings.LOGOUT_REDIRECT_URL)


@signed_in
@require_http_methods(["GET", "POST"])
def preferences(request: PersonRequest) -> HttpResponse:
    """A person's own name, time zone and password: two forms, told apart by their button."""
    user = request.user
    now = db_now()
    about = PreferencesForm(
        initial={"display_name": user.display_name, "time_zone": user.time_zone}
    )
    password = PasswordChangeForm(user)
    if request.method == "POST" and "old_password" in request.POST:
        password = PasswordChangeForm(user, request.POST)
        if password.is_valid():
            services.set_password(
                user=user,
                password=password.cleaned_data["new_password1"],
                actor=actor_of(request),
                now=now,
            )
            update_session_auth_hash(request, user)
            messages.success(request, "Your password is changed; other sessions have ended.")
            return redirect("preferences")
    elif request.method == "POST":
        about = PreferencesForm(request.POST, initial={"time_zone": user.time_zone})
        if about.is_valid():
            services.change_user(user=user, actor=actor_of(request), now=now, **about.cleaned_data)
            messages.success(request, "Your preferences are saved.")
            return redirect("preferences")
    wrong = about.errors or password.errors
    context = {"about": about, "password": password, "now": now}
    return render(request, "core/preferences.html", context, status=422 if wrong else 200)


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Remember light or dark in a cookie, so that the first paint is right without a script."""
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure()):
        back = "/"
    response = redirect(back)
    chosen = request.POST.get("theme", "")
    if chosen in THEMES:
        response.set_cookie(
            "theme", chosen, max_age=A_YEAR, samesite="Lax", secure=request.is_secure()
        )
    else:
        response.delete_cookie("theme", samesite="Lax")
    return response


def _typed_name(request: HttpRequest) -> str:
    """PostgreSQL takes no null characters, and no name is longer than the column."""
    return request.POST.get("username", "").replace("\x00", "")[:150]
