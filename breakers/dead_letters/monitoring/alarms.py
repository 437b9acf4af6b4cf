"""Alarms of streams that stay too deep, with a message when an alarm opens and closes."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from django.db import transaction

from breakers.dead_letters.models import LetterStream
from controlplane.core.canonical import timestamp
from controlplane.core.live import change_notices as live
from controlplane.core.outbox import services as outbox

from . import groups, stream_state, streams

ALARM_AFTER = timedelta(minutes=10)
BACKLOG, RECOVERED = "dlq.backlog", "dlq.recovered"
UNWATCHED_REASON = (
    "This stream is no longer watched: its server or pattern is not configured any more."
)
PAGES_PATH = "/dead-letters/"
RUNBOOK_PATH = "/runbooks/dead-letters/"


def update_alarms(now: datetime) -> int:
    """Open and close alarms according to the sampled depths; return how many changed.

    The alarm of a stream that is not configured any more is closed, since its depth is not sampled
    any more.
    """
    rows = LetterStream.objects.order_by("pk")
    over = rows.filter(over_since__lte=now - ALARM_AFTER, alarmed_at=None)
    # The present depth of a stream that was not sampled since is unknown.
    sampled = over.filter(sampled_at__gte=now - ALARM_AFTER)
    opened = [_open_alarm(pk, now) for pk in sampled.values_list("pk", flat=True)]
    alarmed = rows.filter(alarmed_at__isnull=False)
    watched = {one.pk for one in streams.list_served()} if alarmed else set()
    closed = [_close_alarm(one.pk, now, is_watched=one.pk in watched) for one in alarmed]
    return sum(opened) + sum(closed)


def stream_path(stream: LetterStream) -> str:
    if stream.source == LetterStream.Source.OUTBOX:
        return PAGES_PATH
    return f"{PAGES_PATH}{stream.server}/{quote(stream.name)}/"


@transaction.atomic
def _open_alarm(pk: int, now: datetime) -> bool:
    stream = LetterStream.objects.select_for_update().get(pk=pk)
    since = stream.over_since
    if since is None or since > now - ALARM_AFTER or stream.alarmed_at is not None:
        return False
    stream.alarmed_at = now
    stream.save(update_fields=["alarmed_at"])
    # The full text of the most frequent error may contain secrets.
    largest = [
        f"{one.count} × {': '.join(filter(None, (one.error_type, one.pattern)))}"
        for one in groups.list_groups(stream, most=1)
        if one.error_type or one.pattern
    ]
    _announce_alarm(
        BACKLOG,
        stream,
        since,
        now,
        growth=streams.growth_per_minute([stream], now)[stream.pk],
        worst=largest[0] if largest else None,
        origin=stream.origin or None,
        to_do=f"Runbook: {RUNBOOK_PATH}",
    )
    return True


@transaction.atomic
def _close_alarm(pk: int, now: datetime, *, is_watched: bool) -> bool:
    stream = LetterStream.objects.select_for_update().get(pk=pk)
    alarmed_at = stream.alarmed_at
    is_deep = stream.over_since is not None and is_watched
    if is_deep or alarmed_at is None:
        return False
    stream.alarmed_at = None
    stream.save(update_fields=["alarmed_at"])
    why = None if is_watched else UNWATCHED_REASON
    _announce_alarm(RECOVERED, stream, alarmed_at, now, why=why)
    return True


def _announce_alarm(
    event: str, stream: LetterStream, since: datetime, now: datetime, **facts: Any
) -> None:
    outbox.announce(
        event=event,
        event_key=f"{event}:{stream.pk}:{timestamp(since)}",
        subject=stream.message_thread,
        resource=stream.resource,
        facts={
            "stream": str(stream),
            "depth": stream.depth,
            "limit": stream_state.ALARM_DEPTH,
            "since_at": timestamp(since),
            "path": stream_path(stream),
            **facts,
        },
        now=now,
    )
    live.notify_changed(stream_state.TOPIC, str(stream))
