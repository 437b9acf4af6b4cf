"""Keeping a switch engaged for longer, and acknowledging that it still is."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from controlplane.core import reasons
from controlplane.core.actors import Actor
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.escalation import services as escalation
from controlplane.core.values import require_readable
from switches import facts, publication, reminders
from switches.expiry import FieldErrors, plan_extension
from switches.models import Episode, State
from switches.rules import glass
from switches.services import changes, permanent
from switches.services.engagement import Engagement
from switches.services.register import identify, lock


@retry_if_ended
def extend(
    *, scope: str, key: str, expires_in: str, reason: str, actor: Actor, now: datetime
) -> Engagement:
    """Move the expiry to `now + expires_in`, later than it is now; `permanent` asks for approval.

    What was engaged against a rule stays for a few hours at a time while the rule would refuse it
    still, loudly. Raises :class:`InvalidInput`, or :class:`Conflict` if the switch is not engaged,
    or ramps.
    """
    actor.require("switches:write")
    identify(scope, key)
    if problems := reasons.problems_with(reason):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        head = publication.lock()
        switch = lock(scope, key)
        episode = changes.open_episode(switch) if switch is not None else None
        if switch is None or episode is None:
            raise Conflict(f"{scope}:{key} is not engaged; there is nothing to extend.")
        if episode.state != State.ENGAGED:
            raise Conflict(
                f"{switch.pk} is ramping, and its expiry decides nothing meanwhile. Abort the ramp "
                "to extend it, or engage it again."
            )
        if episode.permanent:
            raise Conflict(
                f"{switch.pk} is permanent: it has no expiry to extend; re-confirm it instead."
            )
        rules = glass.still_against(episode)
        if expires_in == "permanent":
            if rules:
                raise Conflict(f"{switch.pk}: {glass.short(rules)}")
            asked = permanent.ask(switch, episode, reason.strip(), actor, now)
            return Engagement(switch, episode, asked)
        wish = _planned(episode, expires_in, now)
        expires_at = _shortened(episode, wish, rules, now) if rules else wish
        before = facts.picture(switch, episode)
        _move(episode, expires_at, now)
        publication.publish(head, switch, now)
        escalation.close(subject=changes.subject(episode), now=now)
        entry = changes.tell(
            "switch.extended", switch, episode, actor, now, before=before, reason=reason.strip()
        )
        if rules:
            broken = glass.told(reason.strip(), rules, "extend", actor)
            glass.shout(switch, episode, broken, entry, actor, now)
        return Engagement(switch, episode, notice=glass.short(rules) if expires_at < wish else "")


@retry_if_ended
def acknowledge(
    *, scope: str, key: str, comment: str = "", actor: Actor, now: datetime
) -> Engagement:
    """Say that somebody knows the switch is engaged or overdue. Nothing is published.

    It stops the escalation for 24 hours, then it is told of once a day. What the switch becomes
    later is news: one that turns overdue escalates, whoever acknowledged it before.
    """
    actor.require("switches:write")
    identify(scope, key)
    require_readable(comment=comment)
    with transaction.atomic():
        publication.lock()
        switch = lock(scope, key)
        episode = changes.open_episode(switch) if switch is not None else None
        if switch is None or episode is None:
            raise Conflict(f"{scope}:{key} is released; there is nothing to acknowledge.")
        before = facts.picture(switch, episode)
        episode.acknowledged_at, episode.acknowledged_by = now, actor.label
        episode.save(update_fields=["acknowledged_at", "acknowledged_by"])
        escalation.acknowledge(subject=changes.subject(episode), actor=actor, now=now)
        changes.tell(
            "episode.acknowledged",
            switch,
            episode,
            actor,
            now,
            before=before,
            reason=comment.strip(),
        )
        return Engagement(switch, episode)


def _planned(episode: Episode, expires_in: str, now: datetime) -> datetime:
    try:
        return plan_extension(expires_in=expires_in, present=episode.expires_at, now=now)
    except FieldErrors as error:
        raise InvalidInput(error.errors) from error


def _shortened(episode: Episode, wish: datetime, rules: Sequence[str], now: datetime) -> datetime:
    """The new expiry that the rules it stands against leave; no wish is served by an earlier one.

    Raises :class:`InvalidInput` then.
    """
    expires_at = min(wish, now + glass.MAX_DURATION)
    if episode.expires_at is not None and expires_at <= episode.expires_at:
        raise InvalidInput({"expires_in": [f"{glass.short(rules)} It lasts that long already."]})
    return expires_at


def _move(episode: Episode, expires_at: datetime, now: datetime) -> None:
    """A new expiry is a new beginning: nobody has acknowledged it, or been reminded of it."""
    episode.expires_at, episode.overdue_at = expires_at, None
    episode.acknowledged_at, episode.acknowledged_by = None, ""
    for field, reminded_for in reminders.spared(expires_at, now).items():
        setattr(episode, field, reminded_for)
    episode.save(
        update_fields=[
            *("expires_at", "overdue_at", "acknowledged_at", "acknowledged_by"),
            *("day_reminder_for", "hour_reminder_for"),
        ]
    )
