"""Stages of signing in after the first factor."""

from typing import Any

from allauth.account.stages import LoginStage
from allauth.mfa.webauthn.internal.flows import did_use_passwordless_login
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.crypto import constant_time_compare

from . import factors

SECOND_FACTOR = "second-factor"
KNOWN = "known"


class SecondFactorStage(LoginStage):  # type: ignore[misc]
    """The sign-in stage for a code or passkey; skipped after a sign-in by passkey."""

    key = SECOND_FACTOR
    urlname = "second_factor"

    def is_open(self) -> bool:
        """Return False if the person was deactivated or changed their password since stage one."""
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
