"""Pages to request a password reset link, and to set a new password with it or after signing in."""

import time

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.encoding import DjangoUnicodeDecodeError
from django.utils.http import urlsafe_base64_decode
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from controlplane.accounts.authentication import password_changes, resets, throttle
from controlplane.accounts.models.people import User
from controlplane.accounts.people.forms import NewPasswordForm
from controlplane.accounts.requests import UserRequest
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.http.requests import client_ip, request_id_of
from controlplane.core.page_responses import page_view

from .sign_in import get_safe_next

KEPT = "password_reset"
IN_SESSION = "link"
"""Part of the URL in place of the token, which must not get into histories and logs."""
ANSWER_SECONDS = 0.4
"""Minimum response time in seconds, longer than a lookup and a write take."""


@never_cache
@csrf_protect
@require_http_methods(["GET", "POST"])
def request_link(request: HttpRequest) -> HttpResponse:
    """Show the form (GET) or mail a reset link (POST).

    The response and its duration don't reveal whether the user exists.
    """
    if not settings.EMAIL.host:
        raise Http404
    began = time.monotonic()
    typed = request.POST.get("who", "").replace("\x00", "").strip()[:254]
    if typed:
        actor = Actor(
            type="system", name="sign-in", request_id=request_id_of(request), ip=client_ip(request)
        )
        resets.request_link(typed, actor, db_now())
        time.sleep(max(0.0, ANSWER_SECONDS - (time.monotonic() - began)))
    return render(request, "registration/password_forgotten.html", {"asked": bool(typed)})


@never_cache
@sensitive_post_parameters("new_password1", "new_password2")
@csrf_protect
@require_http_methods(["GET", "POST"])
def reset_password(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """Show the form for a new password (GET), or set the password (POST)."""
    user = _find_user(uid)
    kept = str(request.session.get(KEPT, "")) if token == IN_SESSION else token
    if user is None or not resets.tokens.check_token(user, kept):
        return _show_expired(request)
    if token != IN_SESSION:
        request.session.cycle_key()
        request.session[KEPT] = token
        return redirect("password_reset", uid, IN_SESSION)
    form = NewPasswordForm(user, request.POST if request.method == "POST" else None)
    if form.is_valid():
        actor = user.as_actor(request_id=request_id_of(request), ip=client_ip(request))
        chosen = form.cleaned_data["new_password1"]
        try:
            resets.complete_reset(user=user, token=kept, password=chosen, actor=actor, now=db_now())
        except Conflict:
            return _show_expired(request)
        # Unlock the person, who may have tried too many wrong passwords.
        throttle.reset_failures(request, user.username)
        request.session.flush()
        messages.success(request, "Password set. Sign in with it.")
        return redirect("login")
    context = {"form": form, "person": user}
    status = 422 if form.is_bound else 200
    return render(request, "registration/password_reset.html", context, status=status)


@page_view("GET", "POST")
@sensitive_post_parameters("new_password1", "new_password2")
def choose_password(request: UserRequest) -> HttpResponse:
    """Show the form for a new password (GET), or set it and go on to `next` (POST).

    Only for people who have to: others need their present password, on the page of preferences.
    """
    if not password_changes.is_required(request.user, request.session):
        return redirect(get_safe_next(request))
    form = NewPasswordForm(request.user, request.POST if request.method == "POST" else None)
    if form.is_valid():
        password_changes.change_own_password(request, form.cleaned_data["new_password1"], db_now())
        return redirect(get_safe_next(request))
    context = {"form": form, "person": request.user}
    status = 422 if form.is_bound else 200
    return render(request, "registration/password_new.html", context, status=status)


def _find_user(uid: str) -> User | None:
    try:
        key = urlsafe_base64_decode(uid).decode()
        return User.objects.filter(pk=key, is_active=True).first()
    except (ValueError, OverflowError, ValidationError, DjangoUnicodeDecodeError):
        return None


def _show_expired(request: HttpRequest) -> HttpResponse:
    request.session.pop(KEPT, None)
    return render(request, "registration/password_stale.html", status=410)
