"""How a stream stood when it was looked at last: written down, kept by the minute, and told."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from breakers.dead_letters import configured
from breakers.dead_letters.finding import streams
from breakers.dead_letters.letters import ids
from breakers.dead_letters.places import samples
from breakers.dead_letters.places.samples import Sample
from breakers.models.dead_letters import LetterStream
from controlplane.core.live import notes as live

LIMIT = 100
"""Letters; a stream that is deeper for long is alarmed about."""
MINUTE = timedelta(minutes=1)
TOPIC = "dlq"

_MINUTES = """
    INSERT INTO breakers_depthminute AS kept (stream_id, minute, sampled_at, depth, most, arrived)
    SELECT id, date_trunc('minute', %(now)s::timestamptz), %(now)s, depth, depth, 0
    FROM breakers_letterstream WHERE id = ANY(%(ids)s) ORDER BY id
    ON CONFLICT (stream_id, minute) DO UPDATE SET
        depth = excluded.depth, most = greatest(kept.most, excluded.most),
        sampled_at = greatest(kept.sampled_at, excluded.sampled_at)
"""
_ARRIVED = """
    INSERT INTO breakers_depthminute AS kept (stream_id, minute, sampled_at, depth, most, arrived)
    VALUES (%(stream)s, date_trunc('minute', %(now)s::timestamptz), %(now)s, %(depth)s, %(depth)s,
            %(arrived)s)
    ON CONFLICT (stream_id, minute) DO UPDATE SET arrived = kept.arrived + excluded.arrived
"""


def topic_id(stream: LetterStream) -> str:
    """What open pages know the stream by: `default/axiom:dlq:events`."""
    return f"{stream.server}/{stream.name}"


def is_news(stream: LetterStream, sample: Sample) -> bool:
    """Whether the stream stands otherwise than when it was written down last."""
    known = (stream.gone_at is None, stream.depth, stream.first, stream.last)
    return stream.sampled_at is None or known != (
        sample.there,
        sample.depth,
        sample.first,
        sample.last,
    )


@transaction.atomic
def note(stream: LetterStream, sample: Sample, now: datetime) -> None:
    """Write down how the stream stands, unless somebody did so who looked later; `stream` is as
    it stands in the database then."""
    locked = LetterStream.objects.select_for_update().get(pk=stream.pk)
    if locked.sampled_at is None or locked.sampled_at <= now:
        if sample.last_given < locked.indexed_to:
            # Made anew, or another has read on since the sample was taken: a second look tells.
            sample = samples.one(locked.server, locked.name)
        if sample.last_given < locked.indexed_to:
            locked.indexed_to = ""
        _stand(locked, sample, now)
        locked.origin = configured.sources().origin_of(locked.name) or locked.origin
        locked.save()
        keep_minute([locked.pk], now)
        live.changed(TOPIC, topic_id(locked))
    stream.refresh_from_db()


@transaction.atomic
def note_outbox(
    failed: int, oldest_at: datetime | None, newest_at: datetime | None, *, now: datetime
) -> LetterStream:
    """Write down how many messages of the outbox failed."""
    row = streams.outbox(now)
    locked = LetterStream.objects.select_for_update().get(pk=row.pk)
    seen = (failed, oldest_at, newest_at)
    is_same = (locked.depth, locked.oldest_at, locked.newest_at) == seen
    if is_same and not is_due(locked, now):
        return locked
    locked.arrived_total += max(0, failed - locked.depth)
    locked.depth, locked.oldest_at, locked.newest_at = seen
    locked.over_since = (locked.over_since or now) if failed > LIMIT else None
    locked.sampled_at = now
    locked.save()
    keep_minute([locked.pk], now)
    if not is_same:
        live.changed(TOPIC, topic_id(locked))
    return locked


def is_due(stream: LetterStream, now: datetime) -> bool:
    """Whether a new minute has begun since the stream was written down."""
    last = stream.sampled_at
    return last is None or last.replace(second=0, microsecond=0) < now.replace(
        second=0, microsecond=0
    )


@transaction.atomic
def keep_unchanged(unchanged: Sequence[LetterStream], now: datetime) -> None:
    """A new minute began, and these stand as before; pages that show them grow or shrink still are
    told that they do so less by now."""
    pks = sorted(one.pk for one in unchanged)
    rows = LetterStream.objects.select_for_update(skip_locked=True).filter(pk__in=pks)
    mine = sorted(rows.order_by("pk").values_list("pk", flat=True))
    LetterStream.objects.filter(pk__in=mine).update(sampled_at=now)
    keep_minute(mine, now)
    moving = {pk for pk, by in streams.growth(unchanged, now - MINUTE).items() if by}
    live.changed(TOPIC, *(topic_id(one) for one in unchanged if one.pk in moving))


def keep_minute(pks: Sequence[int], now: datetime) -> None:
    """How deep these are in this minute."""
    with connection.cursor() as cursor:
        cursor.execute(_MINUTES, {"ids": list(pks), "now": now})


def arrived(stream: LetterStream, added: Sequence[datetime | None], now: datetime) -> None:
    """Count what was read in this minute; what lay there before the stream was known did not arrive
    now."""
    new = sum(at is None or at >= stream.found_at for at in added)
    values: dict[str, Any] = {
        "stream": stream.pk,
        "depth": stream.depth,
        "arrived": new,
        "now": now,
    }
    if new:
        with connection.cursor() as cursor:
            cursor.execute(_ARRIVED, values)


def _stand(stream: LetterStream, sample: Sample, now: datetime) -> None:
    stream.depth, stream.first, stream.last = sample.depth, sample.first, sample.last
    stream.oldest_at = ids.added_at(sample.first) if sample.first else None
    stream.newest_at = ids.added_at(sample.last) if sample.last else None
    stream.over_since = (stream.over_since or now) if sample.depth > LIMIT else None
    stream.gone_at = None if sample.there else stream.gone_at or now
    stream.sampled_at = now
