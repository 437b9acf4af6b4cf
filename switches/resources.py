"""The JSON shape of a switch and of an episode, one for the API, the shell and the screens."""

from typing import Any

from controlplane.core.canonical import timestamp
from switches.models import Episode, State, Switch

FULLY_ALLOWED = 100


def switch_resource(switch: Switch) -> dict[str, Any]:
    """A switch as the contract shows it; times are RFC 3339 UTC. `effect` is null: not measured."""
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
        "expires_at": timestamp(episode.expires_at) if episode and episode.expires_at else None,
        "on_expiry": episode.on_expiry if episode else None,
        "permanent": episode.permanent if episode else False,
        "overdue": episode.overdue if episode else False,
        "version": switch.version,
        "owner": switch.owner,
        "description": switch.description,
        "runbook_url": switch.runbook_url,
        "last_proven_at": timestamp(switch.last_proven_at) if switch.last_proven_at else None,
        "effect": None,
    }


def episode_resource(episode: Episode) -> dict[str, Any]:
    """An episode as `…/history` shows it."""
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
        "on_expiry": episode.on_expiry,
        "overdue": episode.overdue,
        "acknowledged_at": timestamp(episode.acknowledged_at) if episode.acknowledged_at else None,
        "acknowledged_by": episode.acknowledged_by or None,
        "ended_at": timestamp(episode.ended_at) if episode.ended_at else None,
        "ended_by": episode.ended_by or None,
        "ended_how": episode.ended_how or None,
        "justification": episode.justification or None,
    }


def _percent(episode: Episode | None) -> float | int:
    if episode is None:
        return FULLY_ALLOWED
    percent = float(episode.allow_percent)
    return int(percent) if percent.is_integer() else percent
