"""Attention items about dead letters."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery

from breakers.dead_letters.bulk import replays, results
from breakers.dead_letters.sources import configured_sources
from controlplane.core.durations import format_readable
from controlplane.core.jobs import kinds
from controlplane.core.jobs.models import Job
from controlplane.core.page_registry import AttentionItem, attention_rows

from .models import Departure, LetterServer, LetterStream, Replay
from .monitoring import alarms, streams

MAX_ITEMS = 100
HELD_LONG = timedelta(minutes=10)
OPEN_LONG = timedelta(minutes=5)
FAILED_AGAIN_SHOWN_FOR = timedelta(days=1)


def silent_servers(_now: datetime) -> QuerySet[LetterServer]:
    rows = LetterServer.objects.filter(is_away=True, name__in=configured_sources().servers)
    return rows.order_by("since", "name")[:MAX_ITEMS]


def _find_alarmed(_now: datetime) -> QuerySet[LetterStream]:
    return LetterStream.objects.filter(alarmed_at__isnull=False).order_by("-depth", "pk")


def _find_overfull(_now: datetime) -> QuerySet[LetterStream]:
    sources = configured_sources()
    rows = LetterStream.objects.filter(depth__gt=sources.most_kept, gone_at=None)
    return rows.filter(source=LetterStream.Source.STREAM).order_by("-depth", "pk")


@attention_rows(38, _find_alarmed)
def list_backlogs(now: datetime, found: Sequence[LetterStream]) -> Sequence[AttentionItem]:
    """List streams with an open alarm, the deepest first."""
    return [
        AttentionItem(
            kind="dlq_backlog",
            severity="warning",
            title=f"{one.depth:,} dead letters in {one.name}",
            detail=f"On {one.server}. Find and fix the cause, then retry them.",
            path=alarms.stream_path(one),
            since=min(one.over_since or one.alarmed_at or now, now),
            resource=one.resource,
        )
        for one in streams.keep_shown(found, now)[:MAX_ITEMS]
    ]


@attention_rows(40, silent_servers)
def list_away_servers(now: datetime, found: Sequence[LetterServer]) -> Sequence[AttentionItem]:
    """List unavailable Redis servers, whose letters can't be read or removed."""
    return [
        AttentionItem(
            kind="dlq_server_away",
            severity="warning",
            title=f"The Redis server {one.name} does not respond",
            detail=f"Its dead letters can't be read or retried: {one.error or 'unavailable'}.",
            path=alarms.PAGES_PATH,
            since=min(one.since or now, now),
        )
        for one in found
    ]


def _find_stalled_streams(now: datetime) -> QuerySet[LetterStream]:
    states = Departure.State
    overdue = Q(state=states.INTENDED, intended_at__lte=now - OPEN_LONG)
    overdue |= Q(state=states.RESTORING, restored_at__lte=now - OPEN_LONG)
    # A live job settles its own intents.
    removals = Departure.objects.filter(overdue, Q(job=None) | ~Q(job__state__in=Job.LIVE))
    since = removals.filter(stream=OuterRef("pk")).order_by("intended_at").values("intended_at")
    rows = LetterStream.objects.filter(pk__in=removals.values("stream"))
    return rows.annotate(stalled_since=Subquery(since[:1])).order_by("pk")[:MAX_ITEMS]


def _find_failed_again(now: datetime) -> QuerySet[Replay]:
    # An alarm of the stream is an item of its own.
    rows = Replay.objects.filter(
        failed_again__gt=0,
        job__finished_at__gt=now - FAILED_AGAIN_SHOWN_FOR,
        stream__depth__gt=0,
        stream__alarmed_at=None,
    )
    return rows.select_related("job", "stream").order_by("-pk")[:MAX_ITEMS]


def _find_held_jobs(now: datetime) -> QuerySet[Job]:
    rows = Job.objects.filter(kind=replays.KIND, state=Job.State.HOLDING)
    return rows.filter(created_at__lte=now - HELD_LONG).order_by("created_at")[:MAX_ITEMS]


@attention_rows(39, _find_stalled_streams, _find_held_jobs)
def list_stalled(
    now: datetime, found: Sequence[Any], held: Sequence[Job]
) -> Sequence[AttentionItem]:
    """List removals and bulk replays that have made no progress for minutes."""
    return [*_stalled_stream_items(found, now), *_held_job_items(held, now)]


@attention_rows(41, _find_failed_again)
def list_failed_again(now: datetime, found: Sequence[Replay]) -> Sequence[AttentionItem]:
    """List the retries of the last day of which all letters failed again."""
    shown = [(one, result) for one in found if (result := results.describe_result(one))]
    return [
        AttentionItem(
            kind="dlq_failed_again",
            severity="warning",
            title=f"Retried letters of {one.stream.name} failed again",
            detail=f"{result.text}. Check the error before you retry them.",
            path=f"{alarms.PAGES_PATH}jobs/{one.pk}/",
            since=one.job.finished_at or now,
            subjects=(f"job:{one.pk}",),
            resource=one.stream.resource,
        )
        for one, result in shown
        if result.tone == "overdue"
    ]


@attention_rows(62, _find_overfull)
def list_overfull(now: datetime, found: Sequence[LetterStream]) -> Sequence[AttentionItem]:
    """List streams with more letters than the limit `DLQ_MOST_KEPT`."""
    most = configured_sources().most_kept
    return [
        AttentionItem(
            kind="dlq_overfull",
            severity="info",
            title=f"{one.depth - most:,} dead letters of {one.name} are about to be archived",
            detail=f"It has {one.depth:,} and keeps {most:,}. The oldest are archived first and "
            "can be restored for 30 days.",
            path=alarms.stream_path(one),
            since=min(one.over_since or one.oldest_at or now, now),
            resource=one.resource,
        )
        for one in streams.keep_shown(found, now)[:MAX_ITEMS]
    ]


def _stalled_stream_items(found: Sequence[Any], now: datetime) -> list[AttentionItem]:
    return [
        AttentionItem(
            kind="dlq_unsettled",
            severity="warning",
            title=f"Dead letters of {one.name} can't be moved",
            detail=f"Their removal from {one.server} has been pending for more than"
            f" {format_readable(OPEN_LONG)}. It is retried; check the server.",
            path=alarms.stream_path(one),
            since=min(one.stalled_since, now),
            resource=one.resource,
        )
        for one in found
    ]


def _held_job_items(found: Sequence[Job], now: datetime) -> list[AttentionItem]:
    # The start of a hold is not recorded; the last checkpoint stands in for it.
    held_since = [(one, one.checkpoint_at or one.created_at) for one in found]
    return [
        AttentionItem(
            kind="dlq_replay_held",
            severity="warning",
            title=f"The retry of {one.subject.removeprefix('dlq:')} is on hold",
            detail=one.hold_reason or "Waiting for a breaker to close.",
            path=f"{alarms.PAGES_PATH}jobs/{one.pk}/",
            since=min(since, now),
            subjects=(f"job:{one.pk}",),
            resource=kinds.get_resource(one),
        )
        for one, since in held_since
        if since <= now - HELD_LONG
    ]
