"""Adapters of allauth: sign-in stages, encryption of secrets, requests to the provider."""

from datetime import datetime
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from controlplane.accounts.models.people import User
from controlplane.accounts.people import sessions
from controlplane.core import encryption
from controlplane.core.clock import db_now
from controlplane.core.http import confirmation
from controlplane.core.http.permissions import actor_of

from . import audit_entries

BACKEND = "django.contrib.auth.backends.ModelBackend"
STAGES = ("controlplane.accounts.authentication.stages.SecondFactorStage",)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """An allauth adapter without sign-up, because admins or the provider create accounts."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_login_stages(self) -> list[str]:
        return list(STAGES)

    def login(self, request: HttpRequest, user: User) -> None:
        user.backend = BACKEND
        super().login(request, user)

    def post_login(
        self, request: HttpRequest, user: User, *, redirect_url: str | None, **_more: Any
    ) -> HttpResponse:
        """Record the sign-in after its last stage, when the person is actually signed in."""
        now = db_now()
        _record_sign_in(request, now)
        how = audit_entries.describe_method(request)
        sessions.record_sign_in(actor=actor_of(request), now=now, request=request, method=how)
        return redirect(redirect_url or "/")

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        return redirect("login")

    def add_message(self, *_args: Any, **_more: Any) -> None:
        """Do nothing: the console's views show their own messages."""

    def send_notification_mail(self, *_args: Any, **_more: Any) -> None:
        """Send nothing: the audit trail records these events, and the outbox notifies people."""


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    def encrypt(self, text: str) -> str:
        return encryption.encrypt(text, encryption.SECOND_FACTORS)

    def decrypt(self, encrypted_text: str) -> str:
        return encryption.decrypt(encrypted_text, encryption.SECOND_FACTORS)

    def get_totp_label(self, user: User) -> str:
        return user.username

    def get_totp_issuer(self) -> str:
        return audit_entries.get_issuer_name()

    def _get_site_name(self) -> str:
        return audit_entries.get_issuer_name()


class ProviderCalls(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Adapter whose requests to the identity provider have a timeout and follow no redirects."""

    def get_requests_session(self) -> Any:
        session = super().get_requests_session()
        session.max_redirects = 0
        return session


def _record_sign_in(request: HttpRequest, now: datetime) -> None:
    """Record the sign-in as a confirmation of identity.

    With single sign-on, the recorded time is when the person last authenticated at the provider, if
    known. It is earlier than `now` if the person still had a session at the provider.
    """
    steps = request.session.get(AUTHENTICATION_METHODS_SESSION_KEY) or [{}]
    at = steps[-1].get("auth_time")
    seconds = min(at, now.timestamp()) if isinstance(at, int) else now.timestamp()
    confirmation.record_confirmation(request, seconds)
