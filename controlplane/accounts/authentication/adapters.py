"""Adapters of allauth: sign-in stages, encrypted secrets, requests to the identity provider."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from allauth.account.stages import LoginStage
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.webauthn.internal.flows import did_use_passwordless_login
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.crypto import constant_time_compare

from controlplane.accounts.models.people import User
from controlplane.accounts.people import sessions
from controlplane.core import encryption
from controlplane.core.clock import db_now
from controlplane.core.http import confirmation
from controlplane.core.http.permissions import actor_of

from . import audit_entries, factors

SECOND_FACTOR = "second-factor"
KNOWN = "known"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """An allauth adapter without sign-up: admins or single sign-on create the accounts."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_login_stages(self) -> list[str]:
        return ["controlplane.accounts.authentication.adapters.SecondFactorStage"]

    def login(self, request: HttpRequest, user: User) -> None:
        user.backend = "django.contrib.auth.backends.ModelBackend"
        super().login(request, user)

    def post_login(
        self, request: HttpRequest, user: User, *, redirect_url: str | None, **_more: Any
    ) -> HttpResponse:
        """Record the completed sign-in, also as a confirmation of identity, and redirect."""
        now = db_now()
        steps = request.session.get(AUTHENTICATION_METHODS_SESSION_KEY) or [{}]
        # When the person authenticated at the provider, which may be long ago.
        at = steps[-1].get("auth_time")
        seconds = min(at, now.timestamp()) if isinstance(at, int) else now.timestamp()
        confirmation.record_confirmation(request, seconds)
        method = audit_entries.describe_method(request)
        sessions.record_sign_in(actor=actor_of(request), now=now, request=request, method=method)
        return redirect(redirect_url or "/")

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        return redirect("login")

    def add_message(self, *_args: Any, **_more: Any) -> None:
        """Do nothing: the console's views show their own messages."""

    def send_notification_mail(self, *_args: Any, **_more: Any) -> None:
        """Do nothing: the audit trail records these events, and the outbox notifies people."""


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
    """An allauth adapter whose HTTP requests to the identity provider follow no redirects."""

    def get_requests_session(self) -> Any:
        session = super().get_requests_session()
        session.max_redirects = 0
        return session


class SecondFactorStage(LoginStage):  # type: ignore[misc]
    """The second sign-in stage, for a code or passkey; skipped after a sign-in by passkey."""

    key = SECOND_FACTOR
    urlname = "second_factor"

    def is_open(self) -> bool:
        """Return False if the person was deactivated or changed passwords since the first stage."""
        user: Any = self.login.user
        return (
            user is not None
            and user.is_active
            and constant_time_compare(self.state.get(KNOWN, ""), user.get_session_auth_hash())
        )

    def handle(self) -> tuple[HttpResponse | None, bool]:
        user: Any = self.login.user
        if not factors.has_factor(user) or did_use_passwordless_login(self.request, user):
            return None, True
        self.state[KNOWN] = user.get_session_auth_hash()
        return redirect("second_factor"), True
