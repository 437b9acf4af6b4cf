"""Redirects to the identity provider and back, for sign-in or confirmation of one's identity."""

import secrets
from typing import Any

import requests
import structlog
from allauth.socialaccount.internal import statekit
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from controlplane.accounts.authentication import (
    audit_entries,
    factors,
    links,
    provider_users,
    throttle,
)
from controlplane.accounts.authentication.provider import Identity, ProviderAdapter, build_provider
from controlplane.accounts.requests import UserRequest
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError, Forbidden
from controlplane.core.http import confirmation
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import page_view

from .sign_in import continue_sign_in, get_safe_next

SIGN_IN, CONFIRM = "sign-in", "confirm"
CONFIRMED_WITHIN = 120  # Seconds since the provider authenticated the person.
ANY_AGE = "31536000"
"""A year in seconds: with `max_age`, a provider must return the time of authentication."""

log = structlog.get_logger(__name__)


class ProviderFailed(DomainError):
    status = 502
    slug = "provider-failed"
    title = "Single sign-on failed"


@never_cache
@require_POST
def redirect_to_provider(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider to sign in; POST only, so that links can't start it."""
    throttle.begin_anonymous_session(request, db_now())
    return _redirect_with_nonce(request, SIGN_IN, max_age=ANY_AGE)


@page_view("POST")
def redirect_to_confirm(request: UserRequest) -> HttpResponse:
    return _redirect_with_nonce(request, CONFIRM, prompt="login", max_age="0")


def _redirect_with_nonce(request: HttpRequest, process: str, **more: str) -> HttpResponse:
    if not settings.OIDC.issuer:
        raise Http404
    nonce = secrets.token_urlsafe(32)
    try:
        response: HttpResponse = build_provider(request).redirect(
            request, process, next_url=get_safe_next(request), auth_params={"nonce": nonce, **more},
            nonce=nonce,
        )  # fmt: skip
    except (OAuth2Error, requests.RequestException, KeyError, ValueError) as error:
        return _show_failure(request, error)
    return response


@never_cache
@require_GET
def handle_callback(request: HttpRequest) -> HttpResponse:
    """Handle the provider's redirect: sign the person in, or confirm their identity.

    Each redirect works once, and only in the browser that was sent to the provider.
    """
    if not settings.OIDC.issuer:
        raise Http404
    state = statekit.unstash_state(
        request, provider_id=build_provider(request).sub_id, state_id=request.GET.get("state", "")
    )
    try:
        if state is None:
            raise OAuth2Error("no sign-in was started in this browser")
        if request.GET.get("error") or "code" not in request.GET:
            raise OAuth2Error("the provider sent no code")
        identity = _fetch_identity(request, state)
    except (OAuth2Error, requests.RequestException, KeyError, ValueError, TypeError) as error:
        return _show_failure(request, error)
    try:
        return _accept_identity(request, identity, state)
    except Forbidden as error:
        return _show_refusal(request, error)


def _fetch_identity(request: HttpRequest, state: dict[str, Any]) -> Identity:
    adapter = ProviderAdapter(request)
    app = adapter.get_provider().app
    client, verifier = adapter.get_client(request, app), state.get("pkce_code_verifier")
    answer = adapter.get_access_token_data(request, app, client, pkce_code_verifier=verifier)
    return adapter.verify_identity(answer, str(state.get("nonce", "")))


def _accept_identity(
    request: HttpRequest, identity: Identity, state: dict[str, Any]
) -> HttpResponse:
    now = db_now()
    next_url = str(state.get("next") or "/")
    if state.get("process") == CONFIRM:
        owner = links.find_owner(identity.issuer, identity.subject)
        if owner is None or owner.pk != request.user.pk:
            raise Forbidden("You signed in as another person than the one signed in here.")
        if identity.auth_time is None or now.timestamp() - identity.auth_time > CONFIRMED_WITHIN:
            raise Forbidden(
                f"{settings.OIDC.name} did not ask you to sign in again. Use another method."
            )
        if factors.has_factor(owner) and not identity.with_second_factor:
            raise Forbidden(
                f"{settings.OIDC.name} did not ask for a second factor. Use your second factor of"
                " this console."
            )
        confirmation.record_confirmation(request, now.timestamp())
        actor = actor_of(request)
        audit_entries.record_event("session.confirmed", user=owner, actor=actor, now=now)
        return redirect(next_url)
    if request.user.is_authenticated:
        return redirect("/")
    user = provider_users.find_or_create_user(identity, now)
    method = {
        "provider": settings.OIDC.issuer,
        "mfa": identity.with_second_factor or None,
        "auth_time": identity.auth_time,
    }
    return continue_sign_in(request, user, method="socialaccount", next_url=next_url, **method)


def _show_failure(request: HttpRequest, error: Exception) -> HttpResponse:
    text = str(error)[:200]
    if not isinstance(error, OAuth2Error) or text.startswith("Error retrieving"):
        text = ""  # It may contain tokens, codes or secrets.
    log.warning("single_sign_on.failed", cause=type(error).__name__, said=text)
    return _show_refusal(
        request,
        ProviderFailed(
            f"{settings.OIDC.name} did not confirm your identity. Try again. If it keeps "
            "failing, sign in with a password or contact an admin."
        ),
    )


def _show_refusal(request: HttpRequest, error: DomainError) -> HttpResponse:
    context = {"error": error, "user_is_here": request.user.is_authenticated}
    return render(request, "registration/refused.html", context, status=error.status)
