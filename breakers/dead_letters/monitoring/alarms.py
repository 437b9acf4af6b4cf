"""Who is told that a stream fills up: once when it was too deep for long, and once it is not."""

from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from django.db import transaction

from breakers import message_facts
from breakers.dead_letters.models import LetterStream
from controlplane.core.canonical import timestamp
from controlplane.core.live import notes as live
from controlplane.core.outbox import services as outbox

from . import groups, stream_state, streams

AFTER = timedelta(minutes=10)
BACKLOG, RECOVERED = "dlq.backlog", "dlq.recovered"
UNWATCHED = "Nobody looks at this stream any more: its server or its pattern was taken out."
PAGES = "/dead-letters/"
RUNBOOK = "/runbooks/dead-letters/"


def look(now: datetime) -> int:
    """Begin and end alarms by how streams stand; returns how many that was. One of a stream that
    the environment does not speak of any more ends, as nobody would come to know that it is over.
    """
    known = LetterStream.objects.order_by("pk")
    over = known.filter(over_since__lte=now - AFTER, alarmed_at=None)
    # What was not looked at since is left as it is: nobody knows how deep it is.
    begun = [
        _begin(pk, now)
        for pk in over.filter(sampled_at__gte=now - AFTER).values_list("pk", flat=True)
    ]
    alarmed = known.filter(alarmed_at__isnull=False)
    watched = {one.pk for one in streams.served()} if alarmed else set()
    ended = [_end(one.pk, now, is_watched=one.pk in watched) for one in alarmed]
    return sum(begun) + sum(ended)


def path(stream: LetterStream) -> str:
    """The stream's page."""
    if stream.source == LetterStream.Source.OUTBOX:
        return PAGES
    return f"{PAGES}{stream.server}/{quote(stream.name)}/"


def thread(stream: LetterStream) -> str:
    """The subject that all messages about a stream share."""
    return message_facts.thread("dlq", stream_state.topic_id(stream))


@transaction.atomic
def _begin(pk: int, now: datetime) -> bool:
    stream = LetterStream.objects.select_for_update().get(pk=pk)
    since = stream.over_since
    if since is None or since > now - AFTER or stream.alarmed_at is not None:
        return False
    stream.alarmed_at = now
    stream.save(update_fields=["alarmed_at"])
    facts = {
        **_facts(stream, since),
        "growth": streams.growth([stream], now)[stream.pk],
        "worst": _worst(stream),
        "origin": stream.origin or None,
        "to_do": f"Runbook: {RUNBOOK}",
    }
    _tell(BACKLOG, stream, since, facts, now)
    return True


@transaction.atomic
def _end(pk: int, now: datetime, *, is_watched: bool) -> bool:
    stream = LetterStream.objects.select_for_update().get(pk=pk)
    alarmed_at = stream.alarmed_at
    is_deep = stream.over_since is not None and is_watched
    if is_deep or alarmed_at is None:
        return False
    stream.alarmed_at = None
    stream.save(update_fields=["alarmed_at"])
    facts = {**_facts(stream, alarmed_at), "why": None if is_watched else UNWATCHED}
    _tell(RECOVERED, stream, alarmed_at, facts, now)
    return True


def _facts(stream: LetterStream, since: datetime) -> dict[str, Any]:
    return {
        "stream": stream_state.topic_id(stream),
        "depth": stream.depth,
        "limit": stream_state.LIMIT,
        "since_at": timestamp(since),
        "path": path(stream),
    }


def _worst(stream: LetterStream) -> str | None:
    """What most of them failed of. Not as it came: an error may quote what is nobody's business."""
    for one in groups.of(stream, most=1):
        said = ": ".join(part for part in (one.error_type, one.pattern) if part)
        return f"{one.count} × {said}" if said else None
    return None


def _tell(
    event: str, stream: LetterStream, since: datetime, facts: dict[str, Any], now: datetime
) -> None:
    outbox.announce(
        event=event,
        event_key=f"{event}:{stream.pk}:{timestamp(since)}",
        subject=thread(stream),
        facts=facts,
        now=now,
    )
    live.changed(stream_state.TOPIC, stream_state.topic_id(stream))
