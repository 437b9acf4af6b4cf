"""Audit entries of sign-ins and second factors, without secrets, codes and links."""

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
def record_event(action: str, *, user: User, actor: Actor, now: datetime, **after: object) -> None:
    """Write an audit entry about `user`, such as `session.confirmed` or `factor.added`."""
    audit.record(
        actor=actor, action=action, target=f"user:{user.username}", after=after or None, now=now
    )


def describe_method(request: HttpRequest) -> str:
    """Return how this session's person signed in, such as `password + code` or `single sign-on`."""
    steps = request.session.get(AUTHENTICATION_METHODS_SESSION_KEY, [])
    words = dict.fromkeys(_WORDS.get(str(step.get("type") or step["method"]), "") for step in steps)
    return " + ".join(word for word in words if word)


def get_issuer_name() -> str:
    """Return the issuer name that authenticator apps show for this installation."""
    return f"Switchgear ({settings.ENVIRONMENT_NAME})"
