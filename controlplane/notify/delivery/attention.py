"""Attention items for failed, delayed and backlogged messages."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Count, Max, Min

from controlplane.core.durations import format_readable
from controlplane.core.escalations import summaries
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.page_registry import AttentionItem, attention_source
from controlplane.notify.targets import destination_names
from controlplane.notify.targets.destination_names import DestinationName

from . import backlog, claims, selection

LONG = timedelta(minutes=15)
MAX_ITEMS = 100


@attention_source(60, only_if=lambda _: OutboxMessage.objects.filter(selection.GIVEN_UP))
def list_failed_messages(now: datetime) -> Sequence[AttentionItem]:
    """Return an item per destination with failed messages; critical if one of these is critical."""
    rows = (
        OutboxMessage.objects.filter(selection.GIVEN_UP)
        .values("destination")
        .annotate(count=Count("pk"), since=Min("finished_at"), last=Max("finished_at"))
        .order_by("since")[:MAX_ITEMS]
    )
    names = destination_names.name_destinations(row["destination"] for row in rows)
    critical = OutboxMessage.objects.filter(selection.GIVEN_UP, severity="critical")
    loud = set(critical.values_list("destination", flat=True).distinct())
    return [
        AttentionItem(
            kind="delivery_failed",
            severity="critical" if row["destination"] in loud else "warning",
            title=f"{_count_messages(row['count'])} to {names[row['destination']].label} failed",
            detail=f"The last one {format_readable(now - row['last'])} ago. "
            "Remove the cause and retry them, or discard them.",
            path=_filter_path("failed", names[row["destination"]]),
            since=row["since"],
        )
        for row in rows
    ]


@attention_source(62, only_if=lambda _: OutboxMessage.objects.filter(state="pending"))
def list_delayed_messages(now: datetime) -> Sequence[AttentionItem]:
    """Return an item per destination that has a message pending for over 15 minutes."""
    rows = list(
        OutboxMessage.objects.filter(state="pending")
        .values("destination")
        .annotate(count=Count("pk"), since=Min("created_at"))
        .filter(since__lt=now - LONG)
        .order_by("since")[:MAX_ITEMS]
    )
    places = [row["destination"] for row in rows]
    names = destination_names.name_destinations(places)
    away = dict(
        claims.paused_destinations(now)
        .filter(destination__in=places)
        .values_list("destination", "keep_away_until")
    )
    return [
        AttentionItem(
            kind="delivery_held_up",
            severity="warning",
            title=f"{_count_messages(row['count'])} to "
            f"{names[row['destination']].label} can't go out",
            detail=f"It asked to be left alone for another {format_readable(until - now)}."
            if (until := away.get(row["destination"]))
            else "Each is tried again, with longer and longer pauses.",
            path=_filter_path("pending", names[row["destination"]]),
            since=row["since"],
        )
        for row in rows
    ]


@attention_source(61, only_if=lambda _: backlog.open_alarms())
def list_backlog_alarms(now: datetime) -> Sequence[AttentionItem]:
    """Return an item for the open backlog alarm: critical, or a warning once acknowledged."""
    alarm = backlog.open_alarms().first()
    if alarm is None:
        return []
    known = alarm.acknowledged_at is not None
    notified = f"Told so far: {summaries.format_notified(alarm)}"
    state = f"Acknowledged by {alarm.acknowledged_by}" if known else notified
    return [
        AttentionItem(
            kind="outbox_backlog",
            severity="warning" if known else "critical",
            title=f"{backlog.waiting_count():,} messages wait to go out",
            detail=f"{state}. It is over below {backlog.FEW}.",
            path="/deliveries/?state=pending",
            since=alarm.opened_at,
            due_at=None if known else alarm.next_at,
        )
    ]


def _count_messages(count: int) -> str:
    return f"{count:,} message" + ("" if count == 1 else "s")


def _filter_path(state: str, to: DestinationName) -> str:
    filters = {"state": state, **({} if to.is_personal else {"destination": to.destination})}
    return f"/deliveries/?{urlencode(filters)}"
