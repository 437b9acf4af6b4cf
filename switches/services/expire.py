"""Processing of expired episodes: released, ramped, or held and overdue."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.expressions import Combinable

from controlplane.core.actors import system_actor
from controlplane.core.message_templates import severity_of
from switches import publication
from switches.episodes import batches, changes, digests
from switches.episodes.changes import OVERDUE
from switches.episodes.digests import RAMP_STARTED, RELEASED
from switches.models import Episode, OnExpiry, Ramp, Switch, SwitchState
from switches.ramps import creation, live_ramps
from switches.rules import evaluation, guard
from switches.scopes import overdue_severity

MAX_AT_ONCE = 500
HELD_BY_POLICY = "Expired and still engaged: extend or release it."
HELD_AFTER_RAMP = "Expired, and its ramp has failed, so it stays engaged: extend or release it."


def expire_due(now: datetime) -> int:
    """Process expired episodes, each in its own transaction, and return how many changed.

    Safe to run concurrently: each episode is read again under the lock.
    """
    due = list(past_expiry(now).order_by("expires_at", "pk")[:MAX_AT_ONCE])
    forecast = _forecast_events(due)

    def single_message(episode: Episode) -> tuple[str, str]:
        if event := forecast.get(episode.pk):
            return event, severity_of(event)
        return OVERDUE, overdue_severity(digests.scope_of(episode))

    together = digests.notify_in_digest("episodes.expired", due, single_message, now)
    return batches.process_each(
        due,
        lambda episode: _expire_episode(episode.pk, now, notified=together.get(episode.pk)),
        "some episodes could not expire",
    )


def past_expiry(now: datetime | Combinable) -> QuerySet[Episode]:
    return Episode.objects.filter(
        ended_at__isnull=True, overdue_at__isnull=True, expires_at__lte=now, allow_percent=0
    )


def _forecast_events(due: Sequence[Episode]) -> Mapping[int, str]:
    """Return, by episode id, the expected event: the switch is released, or its ramp starts.

    Episodes that will be held are left out. Safety rules are evaluated as if the preceding episodes
    with the policy `release` were released. An episode that ends differently is announced
    separately.
    """
    events: dict[int, str] = {}
    undecided = [episode for episode in due if episode.on_expiry != OnExpiry.HOLD]
    if not undecided:
        return events
    rules, stopping = guard.list_rules(), guard.stopping_switches()
    switches = [episode.switch_id for episode in undecided]
    waiting = set(
        Ramp.objects.filter(live=True, switch__in=switches).values_list("switch_id", flat=True)
    )
    for episode in undecided:
        switch_id = episode.switch_id
        if evaluation.is_protected(rules, switch_id):
            continue
        if evaluation.refusals_to_release(rules, switch_id, stopping):
            continue
        if episode.on_expiry == OnExpiry.RELEASE:
            stopping.discard(switch_id)
            events[episode.pk] = RELEASED
        elif switch_id not in waiting:
            events[episode.pk] = RAMP_STARTED
    return events


@transaction.atomic
def _expire_episode(episode_id: int, now: datetime, *, notified: str | None) -> bool:
    head = publication.lock()
    switch_id = Episode.objects.values_list("switch_id", flat=True).get(pk=episode_id)
    switch = Switch.objects.select_for_update().get(pk=switch_id)
    episode = changes.lock_open_episode(switch)
    if episode is None or episode.pk != episode_id or episode.overdue_at is not None:
        return False
    if episode.state != SwitchState.ENGAGED:
        return False  # Its ramp handles the expiry.
    if episode.expires_at is None or episode.expires_at > now:
        return False
    actor, in_the_way = system_actor("expiry"), _why_held(switch, episode)
    if not in_the_way and episode.on_expiry == OnExpiry.RAMP:
        to = digests.thread_destinations(episode) if notified == RAMP_STARTED else None
        if creation.start_at_expiry(head, switch, episode, now, to=to):
            return True
        in_the_way = HELD_AFTER_RAMP
    if in_the_way:
        to = digests.thread_destinations(episode) if notified == OVERDUE else None
        before = changes.audit_state(switch, episode)
        changes.mark_overdue(switch, episode, in_the_way, actor, now)
        changes.record_change(
            OVERDUE,
            switch,
            episode,
            actor,
            now,
            before=before,
            reason=in_the_way,
            severity=overdue_severity(switch.scope) if to is None else "info",
            to=to,
        )
        return True
    live_ramps.end_episode(
        head,
        switch,
        episode,
        how=Episode.End.EXPIRED,
        action=RELEASED,
        reason="Expired, with the policy to release.",
        actor=actor,
        now=now,
        to=digests.thread_destinations(episode) if notified == RELEASED else None,
    )
    return True


def _why_held(switch: Switch, episode: Episode) -> str:
    if episode.on_expiry == OnExpiry.HOLD:
        return HELD_BY_POLICY
    if refusals := guard.refusals_to_release(switch.pk):
        rules = " ".join(
            f"The rule {refusal.rule}: {refusal.detail} {refusal.would_pass}"
            for refusal in refusals
        )
        return f"Expired, but a safety rule forbids its release, so it stays engaged. {rules}"
    if evaluation.is_protected(guard.list_rules(), switch.pk):
        return (
            "Expired, but protected switches are not released automatically, so it stays engaged:"
            " extend it, or request its release."
        )
    if episode.on_expiry == OnExpiry.RAMP and live_ramps.find_live_ramp(switch.pk) is not None:
        return "Expired while its release waits for approval. It stays engaged until then."
    return ""  # Disconnected clients release it too, even if an approval is pending here.
