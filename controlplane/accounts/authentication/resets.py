"""Password reset links, valid for one hour and one use.

A link is derived from the person's password and last sign-in, so a change of either invalidates it.
Links aren't stored: the outbox adds a link only when it sends the mail.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from controlplane.accounts.models.people import User
from controlplane.accounts.people import services as people
from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict
from controlplane.core.outbox import renderer
from controlplane.core.outbox import services as outbox

from . import audit_entries

EVENT = "user.reset_asked"
AT_MOST_EVERY = 300  # Seconds between two mails to one person.
MAX_ADDRESSEES = 5


tokens = PasswordResetTokenGenerator()
tokens.key_salt = "controlplane.core.entry.resets"  # Signed into links that are in mails.


def issue_link(user: User, actor: Actor, now: datetime) -> str:
    """Return a password reset link for `user`, to be shown once to the admin `actor`.

    The link is absolute if `PUBLIC_URL` is set, else a path. The caller must check that the actor
    is an admin. Raises :class:`Conflict` for a deactivated person.
    """
    if not user.is_active:
        raise Conflict(f"{user.username} is deactivated; activate them first.")
    audit_entries.record_event("user.reset_issued", user=user, actor=actor, now=now)
    return f"{settings.PUBLIC_URL}{build_path(user)}"


def build_path(user: User) -> str:
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("password_reset", args=[uid, tokens.make_token(user)])


@transaction.atomic
def request_link(typed: str, actor: Actor, now: datetime) -> None:
    """Mail a reset link to the users with this name or address who have a password.

    Nothing happens if there are no such users. Each user gets at most one mail in five minutes.
    """
    users = User.objects.filter(is_active=True).exclude(email="")
    by_name = users.filter(username=User.normalize_username(typed))
    for user in [*by_name, *users.filter(email__iexact=typed)[:MAX_ADDRESSEES]]:
        if not user.has_usable_password():
            continue
        sent = outbox.announce(
            event=EVENT,
            event_key=f"reset:{user.pk}:{int(now.timestamp()) // AT_MOST_EVERY}",
            facts={
                "user": user.pk,
                "username": user.username,
                "ip": actor.ip,
                "said": "Use the link below to set a new password. It works once, within an hour.",
                "otherwise": "Ignore this message. Your password doesn't change.",
            },
            to=[f"email:{user.email}"],
            now=now,
        )
        if sent:
            audit_entries.record_event("user.reset_asked", user=user, actor=actor, now=now)


@renderer.compute_late(EVENT)
def _add_link(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    user = User.objects.filter(pk=int(facts["user"]), is_active=True).first()
    return {"path": build_path(user) if user else "/"}


@transaction.atomic
def complete_reset(*, user: User, token: str, password: str, actor: Actor, now: datetime) -> None:
    """Set the password by a reset link and end all sessions; raise Conflict for an invalid link."""
    locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if not (locked.is_active and tokens.check_token(locked, token)):
        raise Conflict("This link was already used, or is older than an hour. Request a new one.")
    people.set_password(user=locked, password=password, actor=actor, now=now)
