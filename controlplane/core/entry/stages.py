"""The steps between the first proof and being signed in."""

from typing import Any

from allauth.account.stages import LoginStage
from allauth.mfa.webauthn.internal.flows import did_use_passwordless_login
from django.http import HttpResponse
from django.shortcuts import redirect

from controlplane.core.entry import factors

SECOND_FACTOR = "second-factor"


class SecondFactorStage(LoginStage):  # type: ignore[misc]
    """Asks for a code or a passkey, from those who have one and did not come by it."""

    key = SECOND_FACTOR
    urlname = "second_factor"

    def handle(self) -> tuple[HttpResponse | None, bool]:
        user: Any = self.login.user
        if not factors.has_any(user) or did_use_passwordless_login(self.request, user):
            return None, True
        return redirect("second_factor"), True
