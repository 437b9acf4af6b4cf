"""Changing one's own password, required after someone else has set it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash

from controlplane.accounts.models.people import User
from controlplane.accounts.people import services
from controlplane.accounts.requests import UserRequest
from controlplane.core.http.permissions import actor_of

CHOOSE_FIRST = (
    "Someone else set your password. Choose a new one at /preferences/new-password/ first."
)


def is_required(user: User, session: Mapping[str, Any]) -> bool:
    """Return True if this session's person has to choose a new password before anything else.

    Sessions that began by single sign-on or passkey alone don't have to.
    """
    steps = session.get(AUTHENTICATION_METHODS_SESSION_KEY)
    return user.must_change_password and (
        not steps or any(step["method"] == "password" for step in steps)
    )


def change_own_password(request: UserRequest, password: str, now: datetime) -> None:
    """Set the password of the signed-in person and end their other sessions."""
    services.set_password(
        user=request.user,
        password=password,
        actor=actor_of(request),
        now=now,
        keep=request.session.session_key,
    )
    update_session_auth_hash(request, request.user)
    messages.success(request, "Password changed. Your other sessions have ended.")
