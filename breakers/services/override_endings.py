"""Ending of overrides: row, audit row and message."""

from datetime import datetime
from typing import Any

from breakers.models import Dependency, Override
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.canonical import timestamp
from controlplane.core.outbox import services as outbox

EXPIRED, REMOVED, REPLACED, UNDONE = "expired", "removed", "replaced", "undone"


def lock_live_override(dependency: Dependency) -> Override | None:
    """Lock and return the dependency's live override, if any. Lock the registry before."""
    rows = Override.objects.select_for_update()
    return rows.filter(dependency=dependency, ended_at__isnull=True).first()


def end_override(override: Override, why: str, *, actor: Actor, now: datetime) -> None:
    """Mark the override as ended. The calling function must publish a new registry version."""
    # The clock may have been set back: an override must not end before it began.
    override.ended_at = max(now, override.set_at)
    override.ended_by, override.ended_why = actor.label, why
    override.save(update_fields=["ended_at", "ended_by", "ended_why"])


def record_end(
    override: Override,
    dependency: Dependency,
    *,
    reason: str = "",
    restored: Override | None = None,
    actor: Actor,
    now: datetime,
) -> None:
    """Audit and announce an override's end; call it last, as it locks the audit trail.

    `restored` is the override that applies again, if any.
    """
    entry = audit.record(
        actor=actor,
        action=f"override.{override.ended_why}",
        target=dependency.resource,
        reason=reason,
        before=audit_state(override),
        after=audit_state(restored) if restored else None,
        now=now,
    )
    outbox.announce(
        event="override.ended",
        event_key=f"audit:{entry.pk}",
        severity="info",
        subject=dependency.resource,
        resource=dependency.resource,
        facts={
            **override_facts(override, dependency),
            "why": override.ended_why,
            "ended_by": actor.label,
            "ended_at": timestamp(override.ended_at or now),
            "justification": reason,
            "restored": restored.mode if restored else "",
        },
        now=now,
    )


def override_facts(override: Override, dependency: Dependency) -> dict[str, Any]:
    """Return the facts shown by every message about an override."""
    return {
        "dependency": dependency.name,
        "caller": dependency.caller,
        "callee": dependency.callee,
        "criticality": dependency.criticality,
        "mode": override.mode,
        "by": override.set_by,
        "reason": override.reason,
        "set_at": timestamp(override.set_at),
        "expires_at": timestamp(override.expires_at),
        "path": f"/breakers/{dependency.caller}/{dependency.callee}/",
    }


def audit_state(override: Override) -> dict[str, Any]:
    """Return the override's fields for the audit trail."""
    return {
        "mode": override.mode,
        "reason": override.reason,
        "by": override.set_by,
        "set_at": timestamp(override.set_at),
        "expires_at": timestamp(override.expires_at),
        "version": override.version,
    }
