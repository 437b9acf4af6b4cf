"""Taking back a slip of the hand: one's own engage, within half a minute."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F

from controlplane.core.actors import Actor
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict
from switches import publication
from switches.models import Episode, Switch
from switches.rules import glass, guard
from switches.services import changes
from switches.services.register import engaged

UNDO_WITHIN = timedelta(seconds=30)
AT_ONCE = timedelta(seconds=2)
"""Two engaged within this time: nobody can tell which of them "the last" means."""


@retry_if_ended
def undo(*, scope: str, key: str, actor: Actor, now: datetime, if_newest: bool = False) -> Switch:
    """Take back one's own engage within 30 seconds, if nothing changed since.

    A safety rule refuses it only if it was kept by another switch that was released meanwhile:
    what was so half a minute ago is no worse than what is so now. With `if_newest` it has to be the
    last that this person engaged, wherever that was. Raises :class:`Conflict` that says which of
    these does not hold.
    """
    actor.require("switches:write")
    with transaction.atomic():
        head = publication.lock()
        switch, episode = engaged(scope, key)
        if episode.engaged_by_identity != actor.identity:
            raise Conflict("Only whoever engaged it can undo that; release it instead.")
        if now - episode.engaged_at > UNDO_WITHIN:
            raise Conflict("More than 30 seconds have passed; release it instead.")
        if switch.version != episode.engaged_version:
            raise Conflict("Something changed since it was engaged; release it instead.")
        if if_newest:
            _check_newest(episode)
        glass.overridden(guard.refusals_to_undo(switch.pk, episode.engaged_at), None)
        changes.close(
            head,
            switch,
            episode,
            how=Episode.End.UNDONE,
            action="switch.undone",
            reason="Undone by whoever engaged it.",
            actor=actor,
            now=now,
        )
        return switch


def _check_newest(episode: Episode) -> None:
    """Raise :class:`Conflict` if the same person can undo another that was engaged later, or as
    good as at once."""
    others = Episode.objects.filter(
        ended_at__isnull=True,
        engaged_by_identity=episode.engaged_by_identity,
        engaged_at__gte=episode.engaged_at - AT_ONCE,
        engaged_version=F("switch__version"),
    ).exclude(pk=episode.pk)
    other = others.order_by("-engaged_at").first()
    if other is None:
        return
    later = other.engaged_at - episode.engaged_at > AT_ONCE
    told = "You engaged {0} after {1}." if later else "You engaged {0} and {1} at once."
    raise Conflict(
        f"{told.format(other.switch_id, episode.switch_id)} Nothing was undone: press Undo of the "
        "one you mean, on its page."
    )
