"""Handlers of chat message buttons: acknowledge a switch, extend it a day, abort its ramp."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor, label_of
from controlplane.core.errors import Conflict, NotFound
from controlplane.notify import buttons
from controlplane.notify.interactions.actions import button
from switches import publication, services
from switches.models import Episode, Switch
from switches.ramps import actions, descriptions

from .episodes import changes
from .services.registration import lock_switch

EXTEND_BY = "24h"
EXTENSION = timedelta(hours=24)
MIN_GAIN = timedelta(minutes=5)
"""An extension that moves the expiry by less is treated as a repeated button press."""


@button("acknowledge")
def acknowledge(value: Mapping[str, Any], actor: Actor, now: datetime) -> str:
    """Acknowledge the episode that the message is about.

    This handler replaces the one of :mod:`controlplane.notify.buttons`, and passes messages without
    an episode on to it.
    """
    if "switch" not in value or "episode" not in value:
        return buttons.acknowledge_escalation(value, actor, now)
    actor.require("switches:write")
    with transaction.atomic():
        switch, episode = _lock_episode_of(value)
        known_at, overdue_at = episode.acknowledged_at, episode.overdue_at
        is_known = known_at is not None and (overdue_at is None or known_at >= overdue_at)
        if is_known and now - (known_at or now) <= buttons.JUST_NOW:
            return f"{episode.acknowledged_by} already acknowledged {switch.pk}."
        services.acknowledge(scope=switch.scope, key=switch.key, actor=actor, now=now)
        return f"You acknowledged {switch.pk}. Escalation is paused for 24 hours."


@button("extend")
def extend(value: Mapping[str, Any], actor: Actor, now: datetime) -> str:
    """Extend the episode to 24 hours from now, if that is later than its expiry."""
    actor.require("switches:write")
    with transaction.atomic():
        switch, episode = _lock_episode_of(value)
        until = now + EXTENSION
        present = episode.expires_at
        if present is not None and until - present < MIN_GAIN:
            return (
                f"{switch.pk} is already engaged until {_format(present)}, at least 24 hours from"
                " now. Nothing changed."
            )
        extended = services.extend(
            scope=switch.scope,
            key=switch.key,
            expires_in=EXTEND_BY,
            reason=f"Extended by 24 hours in Slack by {actor.name}.",
            actor=actor,
            now=now,
        )
        until = extended.episode.expires_at or until
        return f"{switch.pk} stays engaged until {_format(until)}. {extended.notice}".strip()


@button("abort_ramp")
def abort_ramp(value: Mapping[str, Any], actor: Actor, now: datetime) -> str:
    """Abort the ramp without confirmation, because aborting only blocks traffic."""
    ramp_id = buttons.read_id(value, "ramp")
    with transaction.atomic():
        publication.lock()
        share = Episode.objects.filter(ramps=ramp_id).values_list("allow_percent", flat=True)
        at = descriptions.format_percent(share.first() or 0)
        reason = f"Ramp aborted in Slack by {actor.name} at {at}."
        ramp = actions.abort(ramp_id=ramp_id, reason=reason, actor=actor, now=now)
        return (
            f"You aborted the ramp of {ramp.switch_id} at {at}. It is engaged and blocks all"
            " traffic."
        )


def _lock_episode_of(value: Mapping[str, Any]) -> tuple[Switch, Episode]:
    """Lock and return the switch and the open episode that a pressed button is about.

    Raise :class:`Conflict`, with the present state, if the message is about another episode.
    """
    publication.lock()
    scope, _, key = str(value.get("switch")).partition(":")
    switch = lock_switch(scope, key)
    if switch is None:
        raise NotFound("This button doesn't name a switch. Open the console instead.")
    episode_id = buttons.read_id(value, "episode")
    present = changes.lock_open_episode(switch)
    if present is not None and present.pk == episode_id:
        return switch, present
    text = f"This message is about an earlier state of {switch.pk}."
    past = Episode.objects.filter(pk=episode_id, switch=switch, ended_at__isnull=False).first()
    if past is not None and past.ended_at is not None:
        text = f"{switch.pk} was {past.ended_how} at {_format(past.ended_at)} by {past.ended_by}."
    if present is None:
        raise Conflict(f"{text} There is nothing left to do.")
    who = label_of(present.engaged_by_type, present.engaged_by_name)
    since = _format(present.engaged_at)
    raise Conflict(f"{text} {who} engaged it again at {since}. Use the message about that.")


def _format(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
