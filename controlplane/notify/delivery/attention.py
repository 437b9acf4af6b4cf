"""Attention items for failed, delayed and backlogged messages."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Max, Min, OuterRef, Q, QuerySet, Subquery

from controlplane.core.durations import format_readable
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.page_registry import (
    LINK,
    POST,
    AttentionAction,
    AttentionItem,
    attention_rows,
)
from controlplane.notify.targets import destination_names
from controlplane.notify.targets.destination_names import DestinationName

from . import backlog, claims, selection

LONG = timedelta(minutes=15)
MAX_ITEMS = 100


def _count_failed(_now: datetime) -> QuerySet[Any, Any]:
    return (
        OutboxMessage.objects.filter(selection.GIVEN_UP)
        .values("destination")
        .annotate(
            count=Count("pk"),
            since=Min("finished_at"),
            last=Max("finished_at"),
            critical=Count("pk", filter=Q(severity="critical")),
        )
        .order_by("since")[:MAX_ITEMS]
    )


def _count_delayed(now: datetime) -> QuerySet[Any, Any]:
    paused = claims.paused_destinations(now).filter(destination=OuterRef("destination"))
    return (
        OutboxMessage.objects.filter(state="pending")
        .values("destination")
        .annotate(
            count=Count("pk"),
            since=Min("created_at"),
            paused_until=Subquery(paused.values("keep_away_until")[:1]),
        )
        .filter(since__lt=now - LONG)
        .order_by("since")[:MAX_ITEMS]
    )


@attention_rows(60, _count_failed, _count_delayed)
def list_undelivered_messages(
    now: datetime, failed: Sequence[Mapping[str, Any]], delayed: Sequence[Mapping[str, Any]]
) -> list[AttentionItem]:
    """Return an item per destination with failed messages, or with one pending for 15 minutes.

    Failed messages are critical if one of them is.
    """
    names = destination_names.name_destinations(row["destination"] for row in [*failed, *delayed])
    return [
        *(_build_failed(row, names[row["destination"]], now) for row in failed),
        *(_build_delayed(row, names[row["destination"]], now) for row in delayed),
    ]


@attention_rows(61, lambda _now: backlog.open_alarms().order_by("pk")[:1])
def list_backlog_alarms(_now: datetime, found: Sequence[Escalation]) -> list[AttentionItem]:
    """Return an item for the open backlog alarm: critical, or a warning once acknowledged."""
    return [
        AttentionItem(
            kind="outbox_backlog",
            severity="warning" if alarm.acknowledged_at else "critical",
            title=f"{backlog.waiting_count():,} messages are waiting to be sent",
            detail=f"Acknowledged by {alarm.acknowledged_by}."
            if alarm.acknowledged_at
            else f"The alarm ends when fewer than {backlog.FEW} are waiting.",
            path="/deliveries/?state=pending",
            since=alarm.opened_at,
            due_at=None if alarm.acknowledged_at else alarm.next_at,
            actions=() if alarm.acknowledged_at else (_acknowledge(alarm),),
            subjects=(alarm.subject,),
        )
        for alarm in found
    ]


def _build_failed(row: Mapping[str, Any], to: DestinationName, now: datetime) -> AttentionItem:
    ago = format_readable(max(now - row["last"], timedelta(0)))
    return AttentionItem(
        kind="delivery_failed",
        severity="critical" if row["critical"] else "warning",
        title=f"{_count_messages(row['count'])} to {to.label} failed",
        detail=f"The last one failed {ago} ago. Fix the cause and retry them, or discard them.",
        path=_filter_path("failed", to),
        since=row["since"],
        actions=(
            AttentionAction(
                "Retry or discard…", _filter_path("failed", to), "switches:write", "delivery", LINK
            ),
        ),
    )


def _build_delayed(row: Mapping[str, Any], to: DestinationName, now: datetime) -> AttentionItem:
    until, verb = row["paused_until"], "is" if row["count"] == 1 else "are"
    return AttentionItem(
        kind="delivery_held_up",
        severity="warning",
        title=f"{_count_messages(row['count'])} to {to.label} {verb} delayed",
        detail=f"The receiver asked for a pause of another {format_readable(until - now)}."
        if until
        else "Each is retried, with growing pauses.",
        path=_filter_path("pending", to),
        since=row["since"],
    )


def _acknowledge(alarm: Escalation) -> AttentionAction:
    path = f"/escalations/{alarm.pk}/acknowledge/"
    return AttentionAction("Acknowledge", path, "switches:write", "eye", POST)


def _count_messages(count: int) -> str:
    return f"{count:,} message" + ("" if count == 1 else "s")


def _filter_path(state: str, to: DestinationName) -> str:
    filters = {"state": state, **({} if to.is_personal else {"destination": to.destination})}
    return f"/deliveries/?{urlencode(filters)}"
