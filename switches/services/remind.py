"""Reminders before an expiry, and before the re-confirmation of a permanent episode."""

from datetime import datetime, timedelta
from operator import attrgetter

from django.db import transaction
from django.db.models import Q

from controlplane.core import durations
from controlplane.core.actors import system_actor
from controlplane.core.canonical import timestamp
from controlplane.core.outbox import services as outbox
from switches import reminders
from switches.episodes import batches, changes, digests
from switches.models import Episode
from switches.reminders import DAY, HOUR
from switches.scopes import overdue_severity

MINUTE = timedelta(minutes=1)
MAX_AT_ONCE = 500
FAILING = "some reminders failed"
TO_RECONFIRM = "It stays engaged and must be re-confirmed every week."


def remind_due(now: datetime) -> int:
    """Send every due reminder once and return how many were sent.

    Episodes locked by other transactions are skipped. Errors are collected and raised at the
    end.
    """
    latest = now + DAY
    soon = Episode.objects.filter(
        Q(permanent=False, overdue_at__isnull=True, expires_at__gt=now, expires_at__lte=latest)
        | Q(permanent=True, reconfirm_due_at__gt=now, reconfirm_due_at__lte=latest),
        ended_at__isnull=True,
        allow_percent=0,  # A ramp handles the expiry.
    ).only("permanent", "expires_at", "reconfirm_due_at", "day_reminder_for", "hour_reminder_for")
    owed = [episode for episode in soon if reminders.due_reminder(episode, now)]
    owed.sort(key=attrgetter("ends_at", "pk"))
    due = [episode.pk for episode in owed[:MAX_AT_ONCE]]
    if len(due) <= digests.MAX_NOTIFIED_SINGLY:
        return batches.process_each(due, lambda pk: _send_reminders([pk], now), FAILING)
    failures: list[Exception] = []
    done = _send_reminders(due, now, failures)
    if failures:
        raise ExceptionGroup(FAILING, failures)
    return done


@transaction.atomic
def _send_reminders(pks: list[int], now: datetime, failures: list[Exception] | None = None) -> int:
    """Send the due reminders of these episodes; more than three go in one digest.

    Errors are appended to `failures`, or raised if it is None.
    """
    locked = (
        Episode.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("switch")
        .filter(pk__in=pks, ended_at__isnull=True, overdue_at__isnull=True, allow_percent=0)
        .order_by("expires_at", "pk")
    )
    claimed: list[tuple[Episode, timedelta]] = []

    def claim(episode: Episode) -> bool:
        notice = reminders.due_reminder(episode, now)
        if notice is None:
            return False
        field = "hour_reminder_for" if notice == HOUR else "day_reminder_for"
        with transaction.atomic():
            changes.update_episode(episode, {field: episode.ends_at})
        claimed.append((episode, notice))
        return True

    try:
        batches.process_each(locked, claim, FAILING)
    except ExceptionGroup as group:
        if failures is None:
            raise
        failures.extend(group.exceptions)
    if len(claimed) > digests.MAX_NOTIFIED_SINGLY:
        notices = {episode.pk: notice for episode, notice in claimed}
        digests.announce_digest(
            "episodes.expire_soon",
            [episode for episode, _ in claimed],
            lambda episode: _single_message(episode, notices[episode.pk]),
            now,
            notices,
        )
    else:
        for episode, notice in claimed:
            _announce(episode, notice, now)
    return len(claimed)


def _single_message(episode: Episode, notice: timedelta) -> tuple[str, str]:
    event = "episode.reconfirm_soon" if episode.permanent else "episode.expires_soon"
    return event, overdue_severity(episode.switch.scope) if notice == HOUR else "warning"


def _announce(episode: Episode, notice: timedelta, now: datetime) -> None:
    switch, ends_at = episode.switch, episode.ends_at
    assert ends_at is not None  # noqa: S101 - else no reminder would be due
    event, severity = _single_message(episode, notice)
    left = max(MINUTE, (ends_at - now) // MINUTE * MINUTE)
    outbox.announce(
        event=event,
        event_key=f"reminder:{notice // HOUR}h:{episode.pk}:{timestamp(ends_at)}",
        scope=switch.scope,
        severity=severity,
        subject=changes.episode_subject(episode),
        resource=switch.pk,
        facts=changes.message_facts(
            switch,
            episode,
            system_actor("expiry"),
            said=TO_RECONFIRM if episode.permanent else reminders.EXPIRY_EFFECTS[episode.on_expiry],
            left=durations.format_readable(left),
        ),
        now=now,
    )
