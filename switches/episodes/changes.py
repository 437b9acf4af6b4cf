"""Changes of an episode, recorded in the audit trail, messages and live pages."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from controlplane.core.actors import Actor, label_of
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp, timestamp_or_none
from controlplane.core.escalations import services as escalation
from controlplane.core.live.change_notices import notify_changed
from controlplane.core.outbox import services as outbox
from switches.models import Episode, Switch, SwitchState
from switches.scopes import overdue_severity

NOT_ACKNOWLEDGED: Mapping[str, Any] = {"acknowledged_at": None, "acknowledged_by": ""}
"""The fields of an episode without an acknowledgment."""


def audit_state(switch: Switch, episode: Episode | None) -> dict[str, Any]:
    if episode is None or episode.ended_at is not None:
        broken = (episode.broke_glass or {}).get("release") if episode else None
        released = {"state": SwitchState.RELEASED.value, "version": switch.version}
        return {**released, "broke_glass": broken} if broken else released
    return {
        "state": episode.state.value,
        "episode": episode.pk,
        "reason": episode.reason,
        "engaged_by": label_of(episode.engaged_by_type, episode.engaged_by_name),
        "engaged_at": timestamp(episode.engaged_at),
        "expires_at": timestamp_or_none(episode.expires_at),
        "permanent": episode.permanent,
        "reconfirm_due_at": timestamp_or_none(episode.reconfirm_due_at),
        "on_expiry": episode.on_expiry,
        "allow_percent": float(episode.allow_percent),
        "overdue": episode.overdue,
        "version": switch.version,
        **({"broke_glass": episode.broke_glass} if episode.broke_glass else {}),
    }


def message_facts(switch: Switch, episode: Episode, actor: Actor, **more: Any) -> dict[str, Any]:
    """Return the template values of a message about an episode, plus `more`."""
    return {
        "switch": switch.pk,
        "scope": switch.scope,
        "key": switch.key,
        "episode": episode.pk,
        "by": actor.label,
        "engaged_by": label_of(episode.engaged_by_type, episode.engaged_by_name),
        "reason": episode.reason,
        "expires_at": timestamp_or_none(episode.expires_at),
        "reconfirm_due_at": timestamp_or_none(episode.reconfirm_due_at),
        "on_expiry": episode.on_expiry,
        "version": switch.version,
        "path": f"/switches/{switch.scope}/{switch.key}/",
        **more,
    }


def lock_open_episode(switch: Switch) -> Episode | None:
    """Lock and return the open episode of a locked switch, or None."""
    return Episode.objects.select_for_update().filter(switch=switch, ended_at__isnull=True).first()


def update_episode(episode: Episode, fields: Mapping[str, Any]) -> None:
    """Set these fields of an episode and save no others."""
    for field, value in fields.items():
        setattr(episode, field, value)
    episode.save(update_fields=list(fields))


def episode_subject(episode: Episode) -> str:
    """Return the subject that groups messages and escalations about an episode."""
    return f"episode:{episode.pk}"


def record_change(
    action: str,
    switch: Switch,
    episode: Episode,
    actor: Actor,
    now: datetime,
    *,
    before: dict[str, Any],
    reason: str,
    severity: str = "",
    to: Sequence[str] | None = None,
    more: Mapping[str, Any] = MappingProxyType({}),
    in_words: Mapping[str, Any] = MappingProxyType({}),
) -> AuditEntry:
    """Write a change's audit row and messages, and notify pages; call last in the transaction.

    The call takes the audit lock, which is the last in lock order. `to` limits the messages'
    destinations. `more` is added to the audit row and the messages, `in_words` only to the
    messages.
    """
    entry = audit.record(
        actor=actor,
        action=action,
        target=switch.pk,
        reason=reason,
        before=before,
        after={**audit_state(switch, episode), **more},
        now=now,
    )
    outbox.announce(
        event=action,
        event_key=f"audit:{entry.pk}",
        scope=switch.scope,
        severity=severity,
        subject=episode_subject(episode),
        resource=switch.pk,
        facts=message_facts(switch, episode, actor, said=reason, **more, **in_words),
        now=now,
        to=to,
    )
    notify_changed("switches", switch.pk)
    return entry


OVERDUE = "episode.overdue"


def mark_overdue(switch: Switch, episode: Episode, why: str, actor: Actor, now: datetime) -> None:
    """Mark the episode overdue, clear its acknowledgment and open a new escalation."""
    severity, fields = overdue_severity(switch.scope), {"overdue_at": now}
    escalate(switch, episode, OVERDUE, severity, why, actor, now, fields)


def escalate(
    switch: Switch,
    episode: Episode,
    event: str,
    severity: str,
    why: str,
    actor: Actor,
    now: datetime,
    fields: Mapping[str, Any],
) -> None:
    """Open a new escalation about an episode; set `fields` and clear its acknowledgment first."""
    update_episode(episode, {**fields, **NOT_ACKNOWLEDGED})
    escalation.close(subject=episode_subject(episode), now=now)
    escalation.open_escalation(
        subject=episode_subject(episode),
        event=event,
        severity=severity,
        scope=switch.scope,
        resource=switch.pk,
        facts=message_facts(switch, episode, actor, said=why),
        now=now,
        announced=True,
    )
