"""Keeping a switch engaged for longer, and acknowledging that it still is."""

from datetime import datetime

from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput
from switches import facts, publication, reasons
from switches.expiry import FieldErrors, plan_extension
from switches.models import State
from switches.services import changes
from switches.services.engage import Engagement, ask_for_permanent
from switches.services.register import identify, lock


def extend(
    *, scope: str, key: str, expires_in: str, reason: str, actor: Actor, now: datetime
) -> Engagement:
    """Move the expiry to `now + expires_in`, later than it is now; `permanent` asks for approval.

    Raises :class:`InvalidInput`, or :class:`Conflict` if the switch is not engaged.
    """
    actor.require("switches:write")
    identify(scope, key)
    if problems := reasons.problems_with(reason):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        head = publication.lock()
        switch = lock(scope, key)
        episode = changes.open_episode(switch) if switch is not None else None
        if switch is None or episode is None or episode.state != State.ENGAGED:
            raise Conflict(f"{scope}:{key} is not engaged; there is nothing to extend.")
        if episode.permanent:
            raise Conflict(f"{switch.pk} is permanent; it has no expiry to extend.")
        if expires_in == "permanent":
            asked = ask_for_permanent(switch, episode, reason.strip(), actor, now)
            return Engagement(switch, episode, asked)
        try:
            expires_at = plan_extension(expires_in=expires_in, present=episode.expires_at, now=now)
        except FieldErrors as error:
            raise InvalidInput(error.errors) from error
        before = facts.picture(switch, episode)
        episode.expires_at, episode.overdue_at, episode.acknowledged_at = expires_at, None, None
        episode.save(update_fields=["expires_at", "overdue_at", "acknowledged_at"])
        publication.publish(head, switch, now)
        changes.tell(
            "switch.extended", switch, episode, actor, now, before=before, reason=reason.strip()
        )
        return Engagement(switch, episode)


def acknowledge(
    *, scope: str, key: str, comment: str = "", actor: Actor, now: datetime
) -> Engagement:
    """Say that somebody knows the switch is engaged or overdue. Nothing is published."""
    actor.require("switches:write")
    identify(scope, key)
    with transaction.atomic():
        publication.lock()
        switch = lock(scope, key)
        episode = changes.open_episode(switch) if switch is not None else None
        if switch is None or episode is None:
            raise Conflict(f"{scope}:{key} is released; there is nothing to acknowledge.")
        episode.acknowledged_at, episode.acknowledged_by = now, actor.label
        episode.save(update_fields=["acknowledged_at", "acknowledged_by"])
        audit.record(
            actor=actor,
            action="episode.acknowledged",
            target=switch.pk,
            reason=comment.strip(),
            after=facts.picture(switch, episode),
            now=now,
        )
        return Engagement(switch, episode)
