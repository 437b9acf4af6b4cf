"""Audit entries of sign-ins and second factors; never a secret, code or link."""

from datetime import datetime

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from controlplane.accounts.models.people import User
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit

_WORDS = {
    "password": "password",
    "socialaccount": "single sign-on",
    "totp": "code",
    "recovery_codes": "recovery code",
    "webauthn": "passkey",
}


@transaction.atomic
def note(action: str, *, user: User, actor: Actor, now: datetime, **after: object) -> None:
    """A row about `user`: `session.confirmed`, `factor.added`, `factor.removed`, and the like."""
    audit.record(
        actor=actor, action=action, target=f"user:{user.username}", after=after or None, now=now
    )


def how(request: HttpRequest) -> str:
    """Return the sign-in method: `password`, `password + code`, `passkey`, `single sign-on`."""
    steps = request.session.get(AUTHENTICATION_METHODS_SESSION_KEY, [])
    words = dict.fromkeys(_WORDS.get(str(step.get("type") or step["method"]), "") for step in steps)
    return " + ".join(word for word in words if word)


def issuer() -> str:
    """Return this installation's name in an authenticator, which may hold several of them."""
    return f"Switchgear ({settings.ENVIRONMENT_NAME})"
