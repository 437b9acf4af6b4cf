"""Undo of one's own engage within 30 seconds."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict
from switches import publication
from switches.models import Episode, Switch
from switches.ramps import live_ramps
from switches.rules import break_glass, guard

from .registration import lock_engaged

UNDO_WINDOW = timedelta(seconds=30)
AMBIGUOUS_WINDOW = timedelta(seconds=2)
"""Two engages within this time count as simultaneous."""


@retry_if_ended
def undo(*, scope: str, key: str, actor: Actor, now: datetime, if_newest: bool = False) -> Switch:
    """Undo one's own engage within 30 seconds, if nothing changed since.

    A safety rule refuses the undo if another of its switches was released since the engage.
    With `if_newest`, the switch must be the last that this person engaged. Raise
    :class:`Conflict` with the unmet condition.
    """
    actor.require("switches:write")
    with transaction.atomic():
        head = publication.lock()
        switch, episode = lock_engaged(scope, key)
        authority.require(actor, Action.ENGAGE, switch.pk)
        if episode.engaged_by_identity != actor.identity:
            raise Conflict("Only the person who engaged it can undo that. Release it instead.")
        if now - episode.engaged_at > UNDO_WINDOW:
            raise Conflict("More than 30 seconds have passed. Release it instead.")
        if switch.version != episode.engaged_version:
            raise Conflict("It has changed since it was engaged. Release it instead.")
        if if_newest:
            _check_newest(episode)
        break_glass.override_refusals(guard.refusals_to_undo(switch.pk, episode.engaged_at), None)
        live_ramps.end_episode(
            head,
            switch,
            episode,
            how=Episode.End.UNDONE,
            action="switch.undone",
            reason="Undone by the person who engaged it.",
            actor=actor,
            now=now,
        )
        return switch


def _check_newest(episode: Episode) -> None:
    """Raise :class:`Conflict` if the person engaged another switch later or at the same time."""
    others = Episode.objects.filter(
        ended_at__isnull=True,
        engaged_by_identity=episode.engaged_by_identity,
        engaged_at__gte=episode.engaged_at - AMBIGUOUS_WINDOW,
        engaged_version=F("switch__version"),
    ).exclude(pk=episode.pk)
    other = others.order_by("-engaged_at").first()
    if other is None:
        return
    later = other.engaged_at - episode.engaged_at > AMBIGUOUS_WINDOW
    message = "You engaged {0} after {1}." if later else "You engaged {0} and {1} at once."
    message = message.format(other.switch_id, episode.switch_id)
    raise Conflict(f"{message} Nothing was undone. Use Undo on the page of the switch.")
