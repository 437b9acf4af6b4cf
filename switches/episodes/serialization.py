"""JSON values of episodes for the audit trail and messages."""

from typing import Any

from controlplane.core.actors import Actor, label_of
from controlplane.core.canonical import timestamp, timestamp_or_none
from switches.models import Episode, Switch, SwitchState


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
    """Return the facts of a message about an episode, plus `more`."""
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
