"""The people and tokens that give emergency orders, and their right at the time of an order."""

import json
from dataclasses import replace
from datetime import datetime

from controlplane.accounts.emergency_codes.services import SCOPE, record_use
from controlplane.accounts.models import EmergencyCode, Token, User
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.roles import SCOPES_OF, Role

from .orders import Order


class OrderRefused(Exception):
    """Raised with the reason if an emergency order has no effect in the database."""


def find_actor(order: Order, action: Action = Action.ENGAGE) -> Actor:
    """Return the actor of an order; raise :class:`OrderRefused` without the right to give it.

    The right at the time of the order counts, but the present teams; `action` is what the order
    does to the switch. The actor has no role, so that a change of the account since then does not
    prevent the audit row. The use of a person's code is recorded.
    """
    giver = _find_person(order) if order.by.type == "user" else _find_token(order)
    decision = authority.decide(giver, action, order.switch)
    if not decision.is_allowed:
        raise OrderRefused(decision.detail)
    if giver.type == "user":
        record_use(order.by.id, order.at)
    return replace(giver, role=None)


def _find_person(order: Order) -> Actor:
    user = User.objects.filter(pk=order.by.id, username=order.by.name).first()
    if user is None:
        raise OrderRefused(f"There is no person {order.by.name} with the id {order.by.id}.")
    if not EmergencyCode.objects.valid_at(order.at).filter(user=user).exists():
        raise OrderRefused(_describe_missing_code(user, order))
    role = _require_role(user, order)
    return Actor(type="user", name=user.username, user_id=user.pk, role=role)


def _describe_missing_code(user: User, order: Order) -> str:
    revoked = EmergencyCode.objects.filter(user=user, revoked_at__lte=order.at)
    last = revoked.order_by("-revoked_at").values_list("revoked_at", flat=True).first()
    if last is None:
        return f"{user.username} had no emergency code at the time of the order."
    return (
        f"The emergency code of {user.username} was revoked on {_format(last)}, before the order."
    )


def _find_token(order: Order) -> Actor:
    token = (
        Token.objects.select_related("owner", "team")
        .filter(pk=order.by.id, name=order.by.name)
        .first()
    )
    if token is None:
        raise OrderRefused(f"There is no token {order.by.name} with the id {order.by.id}.")
    if token.revoked_at is not None and token.revoked_at <= order.at:
        raise OrderRefused(
            f"The token {token.name} was revoked on {_format(token.revoked_at)}, before the order."
        )
    if token.expires_at is not None and token.expires_at <= order.at:
        raise OrderRefused(
            f"The token {token.name} expired on {_format(token.expires_at)}, before the order."
        )
    if SCOPE not in token.scopes:
        raise OrderRefused(f"The token {token.name} does not have the scope {SCOPE}.")
    return Actor(
        type="token",
        name=token.name,
        user_id=token.owner_id,
        token_id=token.pk,
        role=Role.OPERATOR if token.team else _require_role(token.owner, order),
        team=token.team.slug if token.team else "",
        patterns=frozenset(token.patterns),
        only_owned=token.only_owned,
    )


def _require_role(user: User, order: Order) -> Role:
    """Return the person's role at the time of the order."""
    role = _find_role_at(user, order.at)
    if role is None:
        raise OrderRefused(f"The account of {user.username} was deactivated before the order.")
    if SCOPE not in SCOPES_OF[role]:
        raise OrderRefused(
            f"{user.username} had the role {role} at the time of the order, which can't give"
            " emergency orders."
        )
    return role


def _find_role_at(user: User, at: datetime) -> Role | None:
    """Return the person's role at that time, or None if their account was deactivated.

    Accounts have their current state only; the audit row of the first later change has the state
    before it.
    """
    later = AuditEntry.objects.filter(
        target=f"user:{user.username}", action="user.changed", at__gt=at
    )
    entry = later.order_by("id").first()
    state = {"role": user.role, "is_active": user.is_active}
    if entry is not None:
        state = json.loads(entry.before)
    return Role(str(state["role"])) if state["is_active"] else None


def _format(moment: datetime) -> str:
    return f"{moment:%-d %b %Y %H:%M:%S} UTC"
