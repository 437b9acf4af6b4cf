"""The requirement to replace a password that someone else has set."""

from collections.abc import Mapping
from typing import Any

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY

from controlplane.accounts.models.people import User

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
