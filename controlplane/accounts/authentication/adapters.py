"""Adapters for allauth: sign-in stages, encryption of secrets, and account linking."""

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

from . import trail

BACKEND = "django.contrib.auth.backends.ModelBackend"
STAGES = ("controlplane.accounts.authentication.stages.SecondFactorStage",)


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Disables sign-up and e-mail: admins or the identity provider create accounts."""

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
        """Record the sign-in after its last step, when the person is actually signed in."""
        now = db_now()
        _record_sign_in(request, now)
        how = trail.how(request)
        sessions.started(actor=actor_of(request), now=now, request=request, method=how)
        return redirect(redirect_url or "/")

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        return redirect("login")

    def add_message(self, *_args: Any, **_more: Any) -> None:
        """Do nothing: the console's views show their own messages."""

    def send_notification_mail(self, *_args: Any, **_more: Any) -> None:
        """Do nothing: the audit trail records it, and the outbox notifies people."""


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    def encrypt(self, text: str) -> str:
        return encryption.encrypt(text, encryption.SECOND_FACTORS)

    def decrypt(self, encrypted_text: str) -> str:
        return encryption.decrypt(encrypted_text, encryption.SECOND_FACTORS)

    def get_totp_label(self, user: User) -> str:
        return user.username

    def get_totp_issuer(self) -> str:
        return trail.issuer()

    def _get_site_name(self) -> str:
        return trail.issuer()


class ProviderCalls(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Adapter whose calls to the provider have a timeout and follow no redirects."""

    def get_requests_session(self) -> Any:
        session = super().get_requests_session()
        session.max_redirects = 0
        return session


def _record_sign_in(request: HttpRequest, now: datetime) -> None:
    """Count a sign-in as a confirmation of identity.

    By single sign-on it counts from the provider's last authentication, if known: the provider may
    have had an open session.
    """
    steps = request.session.get(AUTHENTICATION_METHODS_SESSION_KEY) or [{}]
    at = steps[-1].get("auth_time")
    seconds = min(at, now.timestamp()) if isinstance(at, int) else now.timestamp()
    confirmation.record_confirmation(request, seconds)
