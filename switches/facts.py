"""What is told of an episode in the audit trail, in messages and in conflicts."""

from typing import Any

from controlplane.core.actors import Actor
from controlplane.core.canonical import timestamp
from switches.models import Episode, State, Switch


def picture(switch: Switch, episode: Episode | None) -> dict[str, Any]:
    """The state of a switch as plain values: what the audit trail keeps before and after."""
    if episode is None or episode.ended_at is not None:
        return {"state": State.RELEASED.value, "version": switch.version}
    return {
        "state": episode.state.value,
        "episode": episode.pk,
        "reason": episode.reason,
        "engaged_by": f"{episode.engaged_by_type}:{episode.engaged_by_name}",
        "engaged_at": timestamp(episode.engaged_at),
        "expires_at": timestamp(episode.expires_at) if episode.expires_at else None,
        "permanent": episode.permanent,
        "on_expiry": episode.on_expiry,
        "allow_percent": float(episode.allow_percent),
        "overdue": episode.overdue,
        "version": switch.version,
    }


def message(switch: Switch, episode: Episode, actor: Actor, **more: Any) -> dict[str, Any]:
    """The facts of a notification about an episode."""
    return {
        "switch": switch.pk,
        "scope": switch.scope,
        "key": switch.key,
        "episode": episode.pk,
        "by": actor.label,
        "engaged_by": f"{episode.engaged_by_type}:{episode.engaged_by_name}",
        "reason": episode.reason,
        "expires_at": timestamp(episode.expires_at) if episode.expires_at else None,
        "on_expiry": episode.on_expiry,
        "version": switch.version,
        "path": f"/switches/{switch.scope}/{switch.key}/",
        **more,
    }
