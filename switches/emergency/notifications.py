"""Audit rows and messages about emergency orders that did not become an episode of their own."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from controlplane.core.actors import Actor, label_of
from controlplane.core.audit import services as audit
from controlplane.core.canonical import timestamp
from controlplane.core.live.change_notices import notify_changed
from controlplane.core.outbox import services as outbox
from controlplane.core.scopes import is_switch_id
from controlplane.core.signatures import PublicKey
from switches.models import EmergencyOrder

ACCEPTED = "emergency_order.accepted"
ATTACHED = "emergency_order.attached"
WITHDRAWN = "emergency_order.withdrawn"
WITHDRAWN_LATE = "emergency_order.withdrawn_late"
REFUSED = "emergency_order.refused"
ENDED = "emergency_order.ended"
"""A refused order no longer blocks its switch."""
MAX_TARGET_LENGTH = 200


def order_facts(row: EmergencyOrder) -> dict[str, Any]:
    """Return an order for audit rows and messages: who gave it, where, when, and who had it.

    `relay` is the id of the key of the relay that accepted it, and vouches for who gave it.
    """
    return {
        "id": str(row.pk),
        "action": row.action,
        "by": label_of(row.by_type, row.by_name),
        "at": timestamp(row.at),
        "plane": row.plane,
        **({"relay": PublicKey.parse(row.relay).id} if row.relay else {}),
        "planes": sorted({row.plane, *row.planes}),
        "received_at": timestamp(row.received_at),
        "expires_in": row.expires_in,
        **({"order": str(row.order_id)} if row.order_id else {}),
    }


def record(
    action: str,
    row: EmergencyOrder,
    actor: Actor,
    now: datetime,
    *,
    reason: str,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write the audit row of what became of an order; call last in the transaction."""
    audit.record(
        actor=actor,
        action=action,
        target=row.switch[:MAX_TARGET_LENGTH],
        reason=reason,
        after={"emergency": order_facts(row), **more},
        now=now,
    )
    if is_switch_id(row.switch):
        notify_changed("switches", row.switch)


def announce(event: str, row: EmergencyOrder, now: datetime, **facts: Any) -> None:
    """Write the messages of an event; those about an order and its withdrawal share a subject."""
    is_known = is_switch_id(row.switch)
    scope, _, key = row.switch.partition(":")
    outbox.announce(
        event=event,
        event_key=f"{event}:{row.pk}",
        scope=scope if is_known else "",
        subject=f"emergency:{row.order_id or row.pk}",
        resource=row.switch,
        facts={
            "switch": row.switch,
            "action": row.action,
            "by": label_of(row.by_type, row.by_name),
            "reason": row.reason,
            "plane": row.plane,
            "ordered_at": timestamp(row.at),
            "path": f"/switches/{scope}/{key}/" if is_known else "/attention/",
            **facts,
        },
        now=now,
    )
