"""Permanent episodes: somebody says each week that they have to stay, or people are called.

A permanent episode has no expiry, so its `day_reminder_for` holds the week's end that was reminded
of, and `hour_reminder_for` the one that people were called for.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from controlplane.core import reasons
from controlplane.core.actors import Actor, system
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.escalation import services as escalation
from switches import facts, publication
from switches.expiry import RECONFIRM_EVERY
from switches.models import Episode, Switch
from switches.services import changes, digests, turns
from switches.services.engagement import Engagement
from switches.services.register import identify, lock

MAX_AT_ONCE = 500
UNCONFIRMED = (
    "Nobody has said for a week that it still has to stay. It stays engaged: re-confirm it, or "
    "release it."
)


@retry_if_ended
def reconfirm(*, scope: str, key: str, reason: str, actor: Actor, now: datetime) -> Engagement:
    """Say that a permanent episode still has to stay, for another week. Nothing is published.

    A person says so, never a token. Raises :class:`InvalidInput`, :class:`Forbidden`, or
    :class:`Conflict` if the switch is not permanently engaged.
    """
    actor.require("switches:write")
    if not actor.is_person:
        raise Forbidden("Re-confirming needs a signed-in person; tokens never may.")
    identify(scope, key)
    if problems := reasons.problems_with(reason):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        publication.lock()
        switch = lock(scope, key)
        episode = changes.open_episode(switch) if switch is not None else None
        if switch is None or episode is None:
            raise Conflict(f"{scope}:{key} is released; there is nothing to re-confirm.")
        if not episode.permanent:
            raise Conflict(f"{switch.pk} has an expiry; extend it instead of re-confirming it.")
        before = facts.picture(switch, episode)
        episode.reconfirm_due_at = now + RECONFIRM_EVERY
        episode.reconfirmed_at, episode.reconfirmed_by = now, actor.label
        episode.acknowledged_at, episode.acknowledged_by = None, ""
        episode.save(
            update_fields=[
                *("reconfirm_due_at", "reconfirmed_at", "reconfirmed_by"),
                *("acknowledged_at", "acknowledged_by"),
            ]
        )
        escalation.close(subject=changes.subject(episode), now=now)
        changes.tell(
            "episode.reconfirmed", switch, episode, actor, now, before=before, reason=reason.strip()
        )
        return Engagement(switch, episode)


def call_for_reconfirmation(now: datetime) -> int:
    """Call people for every permanent episode whose week is over; returns how many came due.

    One from before weeks were counted begins its first week now. Safe to run twice at once.
    """
    _begin_weeks(now)
    due = list(_due(now).order_by("reconfirm_due_at", "pk")[:MAX_AT_ONCE])
    together = digests.told_together("episodes.reconfirm_due", due, _single, now)
    return turns.each(
        due,
        lambda episode: _call(episode.pk, now, quietly=episode.pk in together),
        "some episodes could not be called for",
    )


def _single(episode: Episode) -> tuple[str, str]:
    return "episode.reconfirm_due", "warning"


def _due(now: datetime) -> QuerySet[Episode]:
    return Episode.objects.filter(
        ended_at__isnull=True, permanent=True, reconfirm_due_at__lte=now, allow_percent=0
    ).exclude(hour_reminder_for=F("reconfirm_due_at"))


@transaction.atomic
def _call(episode_id: int, now: datetime, *, quietly: bool) -> bool:
    publication.lock()
    switch_id = Episode.objects.values_list("switch_id", flat=True).get(pk=episode_id)
    switch = Switch.objects.select_for_update().get(pk=switch_id)
    episode = _due(now).select_for_update().filter(pk=episode_id).first()
    if episode is None:
        return False
    actor = system("expiry")
    before = facts.picture(switch, episode)
    episode.hour_reminder_for = episode.reconfirm_due_at
    episode.acknowledged_at, episode.acknowledged_by = None, ""
    episode.save(update_fields=["hour_reminder_for", "acknowledged_at", "acknowledged_by"])
    escalation.close(subject=changes.subject(episode), now=now)
    escalation.open_escalation(
        subject=changes.subject(episode),
        event="episode.reconfirm_due",
        severity="warning",
        scope=switch.scope,
        facts=facts.message(switch, episode, actor, said=UNCONFIRMED),
        now=now,
        announced=True,
    )
    changes.tell(
        "episode.reconfirm_due",
        switch,
        episode,
        actor,
        now,
        before=before,
        reason=UNCONFIRMED,
        severity="info" if quietly else "",
        to=digests.threads(episode) if quietly else None,
    )
    return True


def _begin_weeks(now: datetime) -> None:
    """It publishes nothing and nobody decided it: the episode's page just says by when."""
    Episode.objects.filter(
        ended_at__isnull=True, permanent=True, reconfirm_due_at__isnull=True
    ).update(reconfirm_due_at=now + RECONFIRM_EVERY)
