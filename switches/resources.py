"""API resources of switches and episodes."""

from dataclasses import asdict
from datetime import datetime
from decimal import Decimal
from typing import Any

from controlplane.core.canonical import timestamp
from switches.blast import SwitchBlastRadius
from switches.effect import SwitchEffect
from switches.models import Episode, State, Switch

FULLY_ALLOWED = 100


def switch_resource(
    switch: Switch, effect: SwitchEffect | None, ramp: int | None
) -> dict[str, Any]:
    """Return a switch's resource.

    `effect` is None only for a switch that was never published; `ramp` is the id of its live
    ramp.
    """
    episode = switch.episode
    return {
        "id": switch.pk,
        "scope": switch.scope,
        "key": switch.key,
        "state": switch.state.value,
        "allow_percent": _percent(episode),
        "reason": episode.reason if episode else None,
        "engaged_by": episode.engaged_by_name if episode else None,
        "engaged_at": timestamp(episode.engaged_at) if episode else None,
        "expires_at": _moment(episode.expires_at) if episode else None,
        "on_expiry": episode.on_expiry if episode else None,
        "permanent": episode.permanent if episode else False,
        "overdue": episode.overdue if episode else False,
        "version": switch.version,
        "owner": switch.owner,
        "description": switch.description,
        "runbook_url": switch.runbook_url,
        "last_proven_at": _moment(switch.last_proven_at),
        "ramp": ramp,
        "effect": effect_resource(effect) if effect else None,
    }


def effect_resource(effect: SwitchEffect) -> dict[str, Any]:
    """Return an effect's resource; delays are in milliseconds after the commit."""
    return {
        "version": effect.version,
        "applied": effect.applied,
        "instances": effect.instances,
        "stragglers": [straggler.id for straggler in effect.stragglers],
        "stragglers_total": effect.stragglers_total,
        "silent_total": effect.silent_total,
        "measured": effect.measured,
        "p50_ms": effect.p50_ms,
        "p99_ms": effect.p99_ms,
        "requested_at": _moment(effect.requested_at),
        "committed_at": _moment(effect.committed_at),
    }


def blast_resource(blast: SwitchBlastRadius) -> dict[str, Any]:
    """Return a blast radius's resource."""
    return {
        "switch": blast.switch,
        "instances": [
            {
                "id": caller.id,
                "service": caller.service,
                "calls_per_second": _rate(caller.calls_per_second),
                "blocked_per_second": _rate(caller.blocked_per_second),
                "last_seen": timestamp(caller.last_seen),
            }
            for caller in blast.instances
        ],
        "instances_total": blast.instances_total,
        "services": [
            {
                "service": service.id,
                "instances": service.instances,
                "calls_per_second": _rate(service.calls_per_second),
                "last_seen": timestamp(service.last_seen),
            }
            for service in blast.services
        ],
        "tokens": blast.tokens,
        "calls_per_second": _rate(blast.calls_per_second),
        "last_seen": _moment(blast.last_seen),
        "overlapping": [
            {
                "id": other.id,
                "state": other.state,
                "reason": other.reason,
                "allow_percent": plain(other.allow_percent),
            }
            for other in blast.overlapping
        ],
        "rules": [{"action": action, **asdict(refusal)} for action, refusal in blast.refusals],
    }


def episode_resource(episode: Episode) -> dict[str, Any]:
    """Return an episode's resource."""
    return {
        "id": episode.pk,
        "switch": episode.switch_id,
        "state": episode.state.value if episode.ended_at is None else State.RELEASED.value,
        "reason": episode.reason,
        "evidence": episode.evidence,
        "engaged_by": {"type": episode.engaged_by_type, "name": episode.engaged_by_name},
        "engaged_at": timestamp(episode.engaged_at),
        "engaged_version": episode.engaged_version,
        "expires_at": timestamp(episode.expires_at) if episode.expires_at else None,
        "permanent": episode.permanent,
        "reconfirm_due_at": _moment(episode.reconfirm_due_at),
        "on_expiry": episode.on_expiry,
        "overdue": episode.overdue,
        "acknowledged_at": timestamp(episode.acknowledged_at) if episode.acknowledged_at else None,
        "acknowledged_by": episode.acknowledged_by or None,
        "ended_at": timestamp(episode.ended_at) if episode.ended_at else None,
        "ended_by": episode.ended_by or None,
        "ended_how": episode.ended_how or None,
        "justification": episode.justification or None,
        "broke_glass": episode.broke_glass,
    }


def _percent(episode: Episode | None) -> float | int:
    if episode is None:
        return FULLY_ALLOWED
    return plain(episode.allow_percent)


def plain(share: Decimal) -> float | int:
    """Return a share as a number, as an integer if it is whole: 12.5, but 25."""
    percent = float(share)
    return int(percent) if percent.is_integer() else percent


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None


def _rate(per_second: float) -> float:
    return round(per_second, 2)
