"""Weekly re-confirmation of permanent episodes, and escalation if it is missing.

For a permanent episode, `day_reminder_for` stores the deadline of the last reminder, and
`hour_reminder_for` the deadline of the last escalation.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import F, QuerySet

from controlplane.core import authority, reasons
from controlplane.core.actions import Action
from controlplane.core.actors import Actor, system_actor
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.escalations import services as escalation
from switches import publication
from switches.episodes import batches, changes, digests
from switches.expiry import RECONFIRM_EVERY
from switches.models import Episode, Switch
from switches.services.engagement import Engagement

from .registration import identify, lock_engaged

MAX_AT_ONCE = 500
RECONFIRM_DUE = "episode.reconfirm_due"
UNCONFIRMED = "Not re-confirmed for a week. It stays engaged: re-confirm or release it."


@retry_if_ended
def reconfirm(*, scope: str, key: str, reason: str, actor: Actor, now: datetime) -> Engagement:
    """Confirm a permanent episode for another week; nothing is published.

    Raise :class:`InvalidInput`, :class:`Forbidden` unless the actor is a person, or
    :class:`Conflict` if the switch is not permanently engaged.
    """
    actor.require("switches:write")
    if not actor.is_person:
        raise Forbidden("Re-confirming requires a signed-in person, not a token.")
    identify(scope, key)
    if problems := reasons.find_reason_problems(reason):
        raise InvalidInput({"reason": problems})
    with transaction.atomic():
        publication.lock()
        refusal = f"{scope}:{key} is released, so there is nothing to re-confirm."
        switch, episode = lock_engaged(scope, key, refusal)
        authority.require(actor, Action.EXTEND, switch.pk)
        if not episode.permanent:
            raise Conflict(f"{switch.pk} has an expiry. Extend it instead.")
        before = changes.audit_state(switch, episode)
        fields = {
            "reconfirm_due_at": now + RECONFIRM_EVERY,
            "reconfirmed_at": now,
            "reconfirmed_by": actor.label,
            **changes.NOT_ACKNOWLEDGED,
        }
        changes.update_episode(episode, fields)
        escalation.close(subject=changes.episode_subject(episode), now=now)
        changes.record_change(
            "episode.reconfirmed", switch, episode, actor, now, before=before, reason=reason.strip()
        )
        return Engagement(switch, episode)


def call_for_reconfirmation(now: datetime) -> int:
    """Escalate permanent episodes with a missed re-confirmation and return how many.

    Episodes from older versions of Switchgear without a deadline get one, a week from now. Safe to
    run concurrently.
    """
    Episode.objects.filter(
        ended_at__isnull=True, permanent=True, reconfirm_due_at__isnull=True
    ).update(reconfirm_due_at=now + RECONFIRM_EVERY)
    due = list(_due_episodes(now).order_by("reconfirm_due_at", "pk")[:MAX_AT_ONCE])
    together = digests.notify_in_digest(
        "episodes.reconfirm_due", due, lambda _episode: (RECONFIRM_DUE, "warning"), now
    )
    return batches.process_each(
        due,
        lambda episode: _escalate(episode.pk, now, quietly=episode.pk in together),
        "some reminders to re-confirm failed",
    )


def _due_episodes(now: datetime) -> QuerySet[Episode]:
    return Episode.objects.filter(
        ended_at__isnull=True, permanent=True, reconfirm_due_at__lte=now, allow_percent=0
    ).exclude(hour_reminder_for=F("reconfirm_due_at"))


@transaction.atomic
def _escalate(episode_id: int, now: datetime, *, quietly: bool) -> bool:
    publication.lock()
    switch_id = Episode.objects.values_list("switch_id", flat=True).get(pk=episode_id)
    switch = Switch.objects.select_for_update().get(pk=switch_id)
    episode = _due_episodes(now).select_for_update().filter(pk=episode_id).first()
    if episode is None:
        return False
    actor = system_actor("expiry")
    before = changes.audit_state(switch, episode)
    fields = {"hour_reminder_for": episode.reconfirm_due_at}
    changes.escalate(switch, episode, RECONFIRM_DUE, "warning", UNCONFIRMED, actor, now, fields)
    changes.record_change(
        RECONFIRM_DUE,
        switch,
        episode,
        actor,
        now,
        before=before,
        reason=UNCONFIRMED,
        severity="info" if quietly else "",
        to=digests.thread_destinations(episode) if quietly else None,
    )
    return True
