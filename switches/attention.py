"""Attention items of open episodes: overdue, unconfirmed, about to expire, or neglected."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import F, Q, QuerySet

from controlplane.core import durations
from controlplane.core.actors import label_of
from controlplane.core.page_registry import AttentionItem, attention_source

from . import neglected_episodes
from .models import Episode
from .reminders import DAY, EXPIRY_EFFECTS, HOUR

MAX_ITEMS = 300


def _overdue(_now: datetime) -> QuerySet[Episode]:
    return _open().filter(overdue_at__isnull=False)


def _unconfirmed(now: datetime) -> QuerySet[Episode]:
    return _open().filter(permanent=True, reconfirm_due_at__lte=now + DAY, allow_percent=0)


def _expiring(now: datetime) -> QuerySet[Episode]:
    soon = Q(expires_at__lte=now + HOUR)
    later = Q(expires_at__lte=now + DAY, engaged_at__lt=F("expires_at") - DAY)
    found = _open().filter(overdue_at__isnull=True, expires_at__gt=now, allow_percent=0)
    return found.filter(soon | later)


def _long_engaged(now: datetime) -> QuerySet[Episode]:
    return _open().filter(engaged_at__lte=now - neglected_episodes.NEGLECT_AFTER, permanent=False)


@attention_source(10, only_if=_overdue)
def overdue(now: datetime) -> list[AttentionItem]:
    """Return an item for each overdue episode."""
    found = _overdue(now).order_by("expires_at", "pk")
    return [
        _waiting(
            "overdue",
            "critical",
            f"{episode.switch_id} is overdue by {durations.format_readable(now - expires_at)}",
            f"{_acknowledged(episode)}Extend it or release it. {_because(episode)}",
            episode,
            since=expires_at,
        )
        for episode, expires_at in _ending(found)
    ]


@attention_source(20, only_if=_unconfirmed)
def unconfirmed(now: datetime) -> list[AttentionItem]:
    """Return an item for each permanent episode whose re-confirmation is late or due in a day."""
    found = _unconfirmed(now)
    items = []
    for episode in found.order_by("reconfirm_due_at", "pk")[:MAX_ITEMS]:
        due_at = episode.reconfirm_due_at or now
        late = due_at <= now
        title = f"{episode.switch_id} is permanent and " + (
            f"was not re-confirmed for {durations.format_readable(now - due_at)}"
            if late
            else f"has to be re-confirmed within {durations.format_readable(due_at - now)}"
        )
        detail = f"{_acknowledged(episode)}Re-confirm it or release it. {_because(episode)}"
        items.append(
            _waiting(
                "unconfirmed",
                "critical" if late else "warning",
                title,
                detail,
                episode,
                since=due_at if late else due_at - DAY,
                due_at=None if late else due_at,
            )
        )
    return items


@attention_source(40, only_if=_expiring)
def expiring(now: datetime) -> list[AttentionItem]:
    """Return an item for each episode that expires within an hour, or a day for longer episodes.

    Most episodes last one day, so listing those from the start would bury the others. Ramping
    episodes are left out because the ramp decides their end.
    """
    return [
        _waiting(
            "expiring",
            "warning" if expires_at <= now + HOUR else "info",
            f"{episode.switch_id} expires in {durations.format_readable(expires_at - now)}",
            f"{EXPIRY_EFFECTS[episode.on_expiry]} {_because(episode)}",
            episode,
            since=max(episode.engaged_at, expires_at - DAY),
            due_at=expires_at,
        )
        for episode, expires_at in _ending(_expiring(now).order_by("expires_at", "pk"))
    ]


@attention_source(30, only_if=_long_engaged)
def forgotten(now: datetime) -> list[AttentionItem]:
    """Return an item for each episode without action or acknowledgment for a week.

    Permanent, overdue and soon expiring episodes are left out; they have other items.
    """
    found = (
        _open()
        .annotate(looked_at=neglected_episodes.LAST_TOUCHED)
        .filter(neglected_episodes.neglect_signs(now)[neglected_episodes.LEFT_ALONE])
        .filter(overdue_at__isnull=True, expires_at__gt=now + DAY, allow_percent=0)
        .order_by("looked_at", "pk")
    )
    return [
        _waiting(
            "forgotten",
            "warning",
            f"{episode.switch_id} may be forgotten: engaged for "
            f"{durations.format_readable(now - episode.engaged_at)}",
            "Nobody has acknowledged, extended or released it for a week. " + _because(episode),
            episode,
            since=episode.looked_at + neglected_episodes.NEGLECT_AFTER,
            due_at=episode.expires_at,
        )
        for episode in found[:MAX_ITEMS]
    ]


def _open() -> QuerySet[Episode]:
    return Episode.objects.filter(ended_at__isnull=True)


def _ending(found: QuerySet[Episode]) -> Iterable[tuple[Episode, datetime]]:
    return (
        (episode, episode.expires_at)
        for episode in found[:MAX_ITEMS]
        if episode.expires_at is not None
    )


def _waiting(
    kind: str,
    severity: str,
    title: str,
    detail: str,
    episode: Episode,
    *,
    since: datetime,
    due_at: datetime | None = None,
) -> AttentionItem:
    scope, _, key = episode.switch_id.partition(":")
    path = f"/switches/{scope}/{key}/"
    return AttentionItem(kind, severity, title, detail, path, since, due_at)


def _because(episode: Episode) -> str:
    who = label_of(episode.engaged_by_type, episode.engaged_by_name)
    return f"Engaged by {who}: {episode.reason}"


def _acknowledged(episode: Episode) -> str:
    return f"Acknowledged by {episode.acknowledged_by}. " if episode.acknowledged_at else ""
