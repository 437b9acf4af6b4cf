"""Attention items about dead letters."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Min, Q, QuerySet

from breakers.dead_letters.bulk import replays
from breakers.dead_letters.sources import configured_sources
from controlplane.core.durations import format_readable
from controlplane.core.jobs.models import Job
from controlplane.core.page_registry import AttentionItem, attention_source

from .models import Departure, LetterServer, LetterStream
from .monitoring import alarms, streams

MAX_ITEMS = 100
HELD_LONG = timedelta(minutes=10)
OPEN_LONG = timedelta(minutes=5)


def silent_servers(_now: datetime) -> QuerySet[LetterServer]:
    return LetterServer.objects.filter(is_away=True, name__in=configured_sources().servers)


@attention_source(38, only_if=lambda _now: LetterStream.objects.filter(alarmed_at__isnull=False))
def list_backlogs(now: datetime) -> Sequence[AttentionItem]:
    """List streams with an open alarm, the deepest first."""
    rows = [one for one in streams.list_shown(now) if one.alarmed_at is not None]
    return [
        AttentionItem(
            kind="dlq_backlog",
            severity="warning",
            title=f"{one.depth:,} dead letters in {one.name}",
            detail=f"On {one.server}; find out what they fail of, fix it, and replay them.",
            path=alarms.stream_path(one),
            since=min(one.over_since or one.alarmed_at or now, now),
        )
        for one in sorted(rows, key=lambda one: -one.depth)
    ][:MAX_ITEMS]


@attention_source(40, only_if=silent_servers)
def list_away_servers(now: datetime) -> Sequence[AttentionItem]:
    """List unavailable Redis servers, whose letters can't be read or removed."""
    rows = silent_servers(now).order_by("since", "name")
    return [
        AttentionItem(
            kind="dlq_server_away",
            severity="warning",
            title=f"The Redis server {one.name} does not answer",
            detail=f"Its dead letters can't be read or retried: {one.error or 'it is away'}.",
            path=alarms.PAGES_PATH,
            since=min(one.since or now, now),
        )
        for one in rows[:MAX_ITEMS]
    ]


@attention_source(39, only_if=lambda now: (_list_overdue_removals(now), _list_held_jobs(now)))
def list_stalled(now: datetime) -> Sequence[AttentionItem]:
    """List removals and bulk replays that have made no progress for minutes."""
    return [*_overdue_removal_items(now), *_held_job_items(now)]


@attention_source(
    62,
    only_if=lambda _now: LetterStream.objects.filter(depth__gt=configured_sources().most_kept),
)
def list_overfull(now: datetime) -> Sequence[AttentionItem]:
    """List streams with more letters than the limit `DLQ_MOST_KEPT`."""
    most = configured_sources().most_kept
    rows = [one for one in streams.list_shown(now) if one.depth > most and one.gone_at is None]
    return [
        AttentionItem(
            kind="dlq_overfull",
            severity="info",
            title=f"{one.depth - most:,} dead letters of {one.name} are about to be archived",
            detail=f"{one.depth:,} lie there and {most:,} are kept; the oldest go first, and can be"
            " restored for 30 days.",
            path=alarms.stream_path(one),
            since=min(one.over_since or one.oldest_at or now, now),
        )
        for one in rows
        if one.source == LetterStream.Source.STREAM
    ][:MAX_ITEMS]


def _list_overdue_removals(now: datetime) -> QuerySet[Departure]:
    states = Departure.State
    overdue = Q(state=states.INTENDED, intended_at__lte=now - OPEN_LONG)
    overdue |= Q(state=states.RESTORING, restored_at__lte=now - OPEN_LONG)
    # A live job settles its own intents.
    return Departure.objects.filter(overdue, Q(job=None) | ~Q(job__state__in=Job.LIVE))


def _list_held_jobs(now: datetime) -> QuerySet[Job]:
    rows = Job.objects.filter(kind=replays.KIND, state=Job.State.HOLDING)
    return rows.filter(created_at__lte=now - HELD_LONG)


def _overdue_removal_items(now: datetime) -> list[AttentionItem]:
    grouped = _list_overdue_removals(now).values("stream").annotate(since=Min("intended_at"))
    since = {row["stream"]: row["since"] for row in grouped}
    rows = LetterStream.objects.filter(pk__in=since).order_by("pk")[:MAX_ITEMS]
    return [
        AttentionItem(
            kind="dlq_unsettled",
            severity="warning",
            title=f"Dead letters of {one.name} are stuck on their way",
            detail=f"They were to leave {one.server} and have not for more than"
            f" {format_readable(OPEN_LONG)}. It is tried again all the time; look at the server.",
            path=alarms.stream_path(one),
            since=min(since[one.pk], now),
        )
        for one in rows
    ]


def _held_job_items(now: datetime) -> list[AttentionItem]:
    # The start of a hold is not recorded; the last checkpoint stands in for it.
    rows = _list_held_jobs(now).order_by("created_at")[:MAX_ITEMS]
    held_since = [(one, one.checkpoint_at or one.created_at) for one in rows]
    return [
        AttentionItem(
            kind="dlq_replay_held",
            severity="warning",
            title=f"The replay of {one.subject.removeprefix('dlq:')} is held",
            detail=one.hold_reason or "It waits for a breaker to close.",
            path=f"{alarms.PAGES_PATH}jobs/{one.pk}/",
            since=min(since, now),
        )
        for one, since in held_since
        if since <= now - HELD_LONG
    ]
