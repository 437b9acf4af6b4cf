"""Taking back a slip of the hand: one's own engage, within half a minute."""

from datetime import datetime, timedelta

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict
from switches import publication
from switches.models import Episode, Switch
from switches.rules import glass, guard
from switches.services import changes
from switches.services.register import engaged

UNDO_WITHIN = timedelta(seconds=30)


def undo(*, scope: str, key: str, actor: Actor, now: datetime) -> Switch:
    """Take back one's own engage within 30 seconds, if nothing changed since.

    A safety rule refuses it only if it was kept by another switch that was released meanwhile:
    what was so half a minute ago is no worse than what is so now. Raises :class:`Conflict` that
    says which of these does not hold.
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
