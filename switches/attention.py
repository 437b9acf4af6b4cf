"""Items of the attention page about open episodes: overdue, unconfirmed, expiring or neglected."""

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


def _find_overdue(_now: datetime) -> QuerySet[Episode]:
    return _open_episodes().filter(overdue_at__isnull=False)


def _find_unconfirmed(now: datetime) -> QuerySet[Episode]:
    return _open_episodes().filter(permanent=True, reconfirm_due_at__lte=now + DAY, allow_percent=0)


def _find_expiring(now: datetime) -> QuerySet[Episode]:
    soon = Q(expires_at__lte=now + HOUR)
    later = Q(expires_at__lte=now + DAY, engaged_at__lt=F("expires_at") - DAY)
    found = _open_episodes().filter(overdue_at__isnull=True, expires_at__gt=now, allow_percent=0)
    return found.filter(soon | later)


@attention_source(10, only_if=_find_overdue)
def list_overdue(now: datetime) -> list[AttentionItem]:
    found = _find_overdue(now).order_by("expires_at", "pk")
    return [
        _build_item(
            "overdue",
            "critical",
            f"{episode.switch_id} is overdue by {durations.format_readable(now - expires_at)}",
            f"{_acknowledgment_prefix(episode)}Extend it or release it.",
            episode,
            since=expires_at,
        )
        for episode, expires_at in _with_expiry(found)
    ]


@attention_source(20, only_if=_find_unconfirmed)
def list_unconfirmed(now: datetime) -> list[AttentionItem]:
    found = _find_unconfirmed(now)
    items = []
    for episode in found.order_by("reconfirm_due_at", "pk")[:MAX_ITEMS]:
        due_at = episode.reconfirm_due_at or now
        late = due_at <= now
        title = f"{episode.switch_id} is permanent and " + (
            f"was not re-confirmed for {durations.format_readable(now - due_at)}"
            if late
            else f"has to be re-confirmed within {durations.format_readable(due_at - now)}"
        )
        detail = f"{_acknowledgment_prefix(episode)}Re-confirm it or release it."
        items.append(
            _build_item(
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


@attention_source(40, only_if=_find_expiring)
def list_expiring(now: datetime) -> list[AttentionItem]:
    """Return an attention item per episode that expires within a day.

    An episode that was engaged for a day or less is listed only in its last hour: most are so
    short, and would bury the others. Ramping episodes are left out because their ramp decides the
    end.
    """
    return [
        _build_item(
            "expiring",
            "warning" if expires_at <= now + HOUR else "info",
            f"{episode.switch_id} expires in {durations.format_readable(expires_at - now)}",
            EXPIRY_EFFECTS[episode.on_expiry],
            episode,
            since=max(episode.engaged_at, expires_at - DAY),
            due_at=expires_at,
        )
        for episode, expires_at in _with_expiry(_find_expiring(now).order_by("expires_at", "pk"))
    ]


@attention_source(
    30,
    only_if=lambda now: _open_episodes().filter(
        engaged_at__lte=now - neglected_episodes.NEGLECT_AFTER, permanent=False
    ),
)
def list_forgotten(now: datetime) -> list[AttentionItem]:
    """Return an attention item per episode without any action or acknowledgment for a week.

    Permanent, overdue, ramping and soon expiring episodes are left out.
    """
    found = (
        _open_episodes()
        .annotate(looked_at=neglected_episodes.LAST_TOUCHED)
        .filter(neglected_episodes.neglect_conditions(now)[neglected_episodes.LEFT_ALONE])
        .filter(overdue_at__isnull=True, expires_at__gt=now + DAY, allow_percent=0)
        .order_by("looked_at", "pk")
    )
    return [
        _build_item(
            "forgotten",
            "warning",
            f"{episode.switch_id} may be forgotten: engaged for "
            f"{durations.format_readable(now - episode.engaged_at)}",
            "Nobody has acknowledged, extended or released it for a week.",
            episode,
            since=episode.looked_at + neglected_episodes.NEGLECT_AFTER,
            due_at=episode.expires_at,
        )
        for episode in found[:MAX_ITEMS]
    ]


def _open_episodes() -> QuerySet[Episode]:
    return Episode.objects.filter(ended_at__isnull=True)


def _with_expiry(found: QuerySet[Episode]) -> Iterable[tuple[Episode, datetime]]:
    return (
        (episode, episode.expires_at)
        for episode in found[:MAX_ITEMS]
        if episode.expires_at is not None
    )


def _build_item(
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
    who = label_of(episode.engaged_by_type, episode.engaged_by_name)
    text = f"{detail} Engaged by {who}: {episode.reason}"
    return AttentionItem(kind, severity, title, text, path, since, due_at)


def _acknowledgment_prefix(episode: Episode) -> str:
    return f"Acknowledged by {episode.acknowledged_by}. " if episode.acknowledged_at else ""
