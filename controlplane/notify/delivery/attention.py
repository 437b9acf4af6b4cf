"""Attention items for failed, delayed and backlogged messages."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.db.models import Count, Max, Min, QuerySet

from controlplane.core.durations import format_readable
from controlplane.core.escalations import summaries
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.page_registry import AttentionItem, attention_source
from controlplane.notify.targets import naming
from controlplane.notify.targets.naming import Named

from . import backlog, claims, selection

LONG = timedelta(minutes=15)
MAX_ITEMS = 100


def _failed_messages(_now: datetime) -> QuerySet[OutboxMessage]:
    return OutboxMessage.objects.filter(selection.GIVEN_UP)


def _pending_messages(_now: datetime) -> QuerySet[OutboxMessage]:
    return OutboxMessage.objects.filter(state="pending")


def _backlog_alarms(_now: datetime) -> QuerySet[Escalation]:
    return Escalation.objects.filter(subject=backlog.SUBJECT, closed_at=None)


@attention_source(60, only_if=_failed_messages)
def failed(now: datetime) -> Sequence[AttentionItem]:
    """Return one item per destination with failed messages; critical if one of them is."""
    rows = (
        OutboxMessage.objects.filter(selection.GIVEN_UP)
        .values("destination")
        .annotate(count=Count("pk"), since=Min("finished_at"), last=Max("finished_at"))
        .order_by("since")[:MAX_ITEMS]
    )
    names = naming.named(row["destination"] for row in rows)
    loud = set(
        OutboxMessage.objects.filter(selection.GIVEN_UP, severity="critical")
        .values_list("destination", flat=True)
        .distinct()
    )
    return [
        AttentionItem(
            kind="delivery_failed",
            severity="critical" if row["destination"] in loud else "warning",
            title=f"{_messages(row['count'])} to {names[row['destination']].label} failed",
            detail=f"The last one {format_readable(now - row['last'])} ago. "
            "Remove the cause and retry them, or discard them.",
            path=_path("failed", names[row["destination"]]),
            since=row["since"],
        )
        for row in rows
    ]


@attention_source(62, only_if=_pending_messages)
def held_up(now: datetime) -> Sequence[AttentionItem]:
    """Return one item per destination whose oldest pending message is over 15 minutes old."""
    rows = list(
        OutboxMessage.objects.filter(state="pending")
        .values("destination")
        .annotate(count=Count("pk"), since=Min("created_at"))
        .filter(since__lt=now - LONG)
        .order_by("since")[:MAX_ITEMS]
    )
    places = [row["destination"] for row in rows]
    names = naming.named(places)
    away = dict(
        claims.kept_away(now)
        .filter(destination__in=places)
        .values_list("destination", "keep_away_until")
    )
    return [
        AttentionItem(
            kind="delivery_held_up",
            severity="warning",
            title=f"{_messages(row['count'])} to {names[row['destination']].label} can't go out",
            detail=_why(away.get(row["destination"]), now),
            path=_path("pending", names[row["destination"]]),
            since=row["since"],
        )
        for row in rows
    ]


@attention_source(61, only_if=_backlog_alarms)
def backlogged(now: datetime) -> Sequence[AttentionItem]:
    """Return the open backlog alarm: critical until acknowledged, then a warning."""
    alarm = Escalation.objects.filter(subject=backlog.SUBJECT, closed_at=None).first()
    if alarm is None:
        return []
    known = alarm.acknowledged_at is not None
    said = (
        f"Acknowledged by {alarm.acknowledged_by}"
        if known
        else f"Told so far: {summaries.format_notified(alarm)}"
    )
    return [
        AttentionItem(
            kind="outbox_backlog",
            severity="warning" if known else "critical",
            title=f"{backlog.waiting_count():,} messages wait to go out",
            detail=f"{said}. It is over below {backlog.FEW}.",
            path="/deliveries/?state=pending",
            since=alarm.opened_at,
            due_at=None if known else alarm.next_at,
        )
    ]


def _messages(count: int) -> str:
    return f"{count:,} message" + ("" if count == 1 else "s")


def _why(until: datetime | None, now: datetime) -> str:
    if until is None:
        return "Each is tried again, with longer and longer pauses."
    return f"It asked to be left alone for another {format_readable(until - now)}."


def _path(state: str, to: Named) -> str:
    """Return the path of the filtered list, without a person's address."""
    narrowed = (
        {"state": state} if to.is_personal else {"state": state, "destination": to.destination}
    )
    return f"/deliveries/?{urlencode(narrowed)}"
