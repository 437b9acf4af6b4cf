"""Items of the attention page about open episodes: overdue, unconfirmed, expiring or neglected."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q, QuerySet

from controlplane.core import durations
from controlplane.core.actions import Action
from controlplane.core.actors import label_of
from controlplane.core.page_registry import AttentionAction, AttentionItem, attention_rows

from . import neglected_episodes
from .episodes.changes import episode_subject
from .models import Episode
from .reminders import DAY, EXPIRY_EFFECTS, HOUR

MAX_ITEMS = 300
SOON = timedelta(minutes=10)


FIELDS = (
    *("id", "switch_id", "reason", "engaged_by_type", "engaged_by_name", "engaged_by_identity"),
    *("engaged_at", "expires_at", "on_expiry", "reconfirm_due_at"),
    *("acknowledged_at", "acknowledged_by"),
)
EXTEND, RELEASE, ACKNOWLEDGE, RECONFIRM = "extend", "release", "acknowledge", "reconfirm"
# Label, icon and needed authority of each action, by the last part of its path.
ACTIONS = {
    EXTEND: ("Extend…", "extend", Action.EXTEND),
    RELEASE: ("Release…", "released", Action.RELEASE),
    ACKNOWLEDGE: ("Acknowledge…", "eye", Action.EXTEND),
    RECONFIRM: ("Re-confirm…", "permanent", Action.EXTEND),
}


def _open_episodes() -> QuerySet[Episode]:
    return Episode.objects.filter(ended_at__isnull=True).only(*FIELDS)


def _is_expiring(now: Any) -> Q:
    soon = Q(expires_at__lte=now + HOUR, engaged_at__lt=F("expires_at") - HOUR)
    any_length = Q(expires_at__lte=now + SOON)
    later = Q(expires_at__lte=now + DAY, engaged_at__lt=F("expires_at") - DAY)
    return Q(
        soon | later | any_length, overdue_at__isnull=True, expires_at__gt=now, allow_percent=0
    )


def _is_unconfirmed(now: Any) -> Q:
    return Q(permanent=True, reconfirm_due_at__lte=now + DAY, allow_percent=0)


def _find_overdue(_now: Any) -> QuerySet[Episode]:
    rows = _open_episodes().filter(overdue_at__isnull=False, expires_at__isnull=False)
    return rows.order_by("expires_at", "pk")[:MAX_ITEMS]


def _find_unconfirmed(now: Any) -> QuerySet[Episode]:
    return (
        _open_episodes().filter(_is_unconfirmed(now)).order_by("reconfirm_due_at", "pk")[:MAX_ITEMS]
    )


def _find_expiring(now: Any) -> QuerySet[Episode]:
    return _open_episodes().filter(_is_expiring(now)).order_by("expires_at", "pk")[:MAX_ITEMS]


def _find_forgotten(now: Any) -> QuerySet[Episode]:
    rows = _open_episodes().annotate(looked_at=neglected_episodes.LAST_TOUCHED)
    rows = rows.filter(neglected_episodes.neglect_conditions(now)[neglected_episodes.LEFT_ALONE])
    rows = rows.filter(overdue_at__isnull=True, expires_at__gt=now + DAY, allow_percent=0)
    return rows.order_by("looked_at", "pk")[:MAX_ITEMS]


def _find_engaged_by_hand(_now: Any) -> QuerySet[Episode]:
    rows = _open_episodes().filter(engaged_by_identity__startswith="user:", allow_percent=0)
    return rows.filter(overdue_at__isnull=True).order_by("-engaged_at", "-pk")[:MAX_ITEMS]


@attention_rows(10, _find_overdue)
def list_overdue(now: datetime, found: Sequence[Any]) -> list[AttentionItem]:
    return [
        _build_item(
            "overdue",
            "critical",
            f"{episode.switch_id} is overdue by "
            f"{durations.format_readable(now - episode.expires_at)}",
            f"{_acknowledgment_prefix(episode)}Extend it or release it.",
            episode,
            (EXTEND, RELEASE) if episode.acknowledged_at else (EXTEND, RELEASE, ACKNOWLEDGE),
            since=episode.expires_at,
        )
        for episode in found
    ]


@attention_rows(20, _find_unconfirmed)
def list_unconfirmed(now: datetime, found: Sequence[Episode]) -> list[AttentionItem]:
    items = []
    for episode in found:
        due_at = episode.reconfirm_due_at or now
        late = due_at <= now
        title = f"{episode.switch_id} is permanent and " + (
            f"was not re-confirmed for {durations.format_readable(now - due_at)}"
            if late
            else f"must be re-confirmed within {durations.format_readable(due_at - now)}"
        )
        detail = f"{_acknowledgment_prefix(episode)}Re-confirm it or release it."
        items.append(
            _build_item(
                "unconfirmed",
                "critical" if late else "warning",
                title,
                detail,
                episode,
                (RECONFIRM, RELEASE),
                since=due_at if late else due_at - DAY,
                due_at=None if late else due_at,
            )
        )
    return items


@attention_rows(40, _find_expiring)
def list_expiring(now: datetime, found: Sequence[Any]) -> list[AttentionItem]:
    """Return an attention item per episode that expires within a day.

    An episode that was engaged for a day or less is listed only in its last hour, one of an hour
    or less in its last ten minutes: most are so short, and would bury the others. Ramping episodes
    are left out because their ramp decides the end.
    """
    return [
        _build_item(
            "expiring",
            "warning" if episode.expires_at <= now + HOUR else "info",
            f"{episode.switch_id} expires "
            + ("soon" if episode.expires_at <= now + HOUR else "within a day"),
            EXPIRY_EFFECTS[episode.on_expiry],
            episode,
            (EXTEND, RELEASE),
            since=max(episode.engaged_at, episode.expires_at - DAY),
            due_at=episode.expires_at,
        )
        for episode in found
    ]


@attention_rows(30, _find_forgotten)
def list_forgotten(now: datetime, found: Sequence[Any]) -> list[AttentionItem]:
    """Return an attention item per episode without any action or acknowledgment for a week.

    Permanent, overdue, ramping and soon expiring episodes are left out.
    """
    return [
        _build_item(
            "forgotten",
            "warning",
            f"{episode.switch_id} may be forgotten: engaged for "
            f"{durations.format_readable(now - episode.engaged_at)}",
            "Nobody has acknowledged, extended or released it for a week.",
            episode,
            (ACKNOWLEDGE, RELEASE),
            since=episode.looked_at + neglected_episodes.NEGLECT_AFTER,
            due_at=episode.expires_at,
        )
        for episode in found
    ]


@attention_rows(95, _find_engaged_by_hand)
def list_engaged_by_hand(_now: datetime, found: Sequence[Episode]) -> list[AttentionItem]:
    """Return an item per engaged switch for the person who engaged it, unless others list it."""
    return [
        replace(
            _build_item(
                "engaged",
                "info",
                f"You engaged {episode.switch_id}",
                "Release it when the cause is fixed.",
                episode,
                (RELEASE,) if episode.expires_at is None else (RELEASE, EXTEND),
                since=episode.engaged_at,
            ),
            only_for=int(episode.engaged_by_identity.removeprefix("user:")),
        )
        for episode in found
        if episode.engaged_by_identity.removeprefix("user:").isdecimal()
    ]


def _build_item(
    kind: str,
    severity: str,
    title: str,
    detail: str,
    episode: Episode,
    actions: Sequence[str],
    *,
    since: datetime,
    due_at: datetime | None = None,
) -> AttentionItem:
    scope, _, key = episode.switch_id.partition(":")
    path = f"/switches/{scope}/{key}/"
    who = label_of(episode.engaged_by_type, episode.engaged_by_name)
    return AttentionItem(
        kind=kind,
        severity=severity,
        title=title,
        detail=f"{detail} Engaged by {who}: {episode.reason}",
        path=path,
        since=since,
        due_at=due_at,
        actions=tuple(
            AttentionAction(
                ACTIONS[one][0],
                f"{path}{one}/",
                "switches:write",
                ACTIONS[one][1],
                needs_current=one == RELEASE,
                authority=ACTIONS[one][2],
            )
            for one in actions
        ),
        subjects=(episode_subject(episode),),
        resource=episode.switch_id,
    )


def _acknowledgment_prefix(episode: Episode) -> str:
    return f"Acknowledged by {episode.acknowledged_by}. " if episode.acknowledged_at else ""
