"""Storage of stream samples: the state of each stream, its depth by minute, and live updates."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from breakers.dead_letters.letters import ids
from breakers.dead_letters.models import MAX_NAME_LENGTH, LetterStream
from breakers.dead_letters.redis_servers.samples import StreamSample
from breakers.dead_letters.sources import configured_sources
from controlplane.core.live import change_notices as live
from controlplane.core.sql import execute, fetch_all

from . import streams

ALARM_DEPTH = 100
"""Number of letters; a stream that exceeds it for 10 minutes raises an alarm."""
MINUTE = timedelta(minutes=1)
TOPIC = "dlq"
SampledStream = tuple[LetterStream, StreamSample]

_MINUTES = """
    INSERT INTO breakers_depthminute AS kept (stream_id, minute, sampled_at, depth, most, arrived)
    SELECT id, date_trunc('minute', %(now)s::timestamptz), %(now)s, depth, depth, 0
    FROM breakers_letterstream WHERE id = ANY(%(ids)s) ORDER BY id
    ON CONFLICT (stream_id, minute) DO UPDATE SET
        depth = excluded.depth, most = greatest(kept.most, excluded.most),
        sampled_at = greatest(kept.sampled_at, excluded.sampled_at)
"""
_COLUMNS = "pk", "depth", "first", "last", "oldest_at", "newest_at", "there", "origin", "read_to"
_SAMPLES = """
    UPDATE breakers_letterstream AS stream SET
        depth = sample.depth, first = sample.first, last = sample.last,
        oldest_at = sample.oldest_at, newest_at = sample.newest_at, origin = sample.origin,
        sampled_at = %(now)s,
        over_since = CASE WHEN sample.depth > %(limit)s
                     THEN coalesce(stream.over_since, %(now)s::timestamptz) END,
        gone_at = CASE WHEN NOT sample.there
                  THEN coalesce(stream.gone_at, %(now)s::timestamptz) END,
        indexed_to = CASE WHEN stream.indexed_to = sample.read_to THEN ''
                     ELSE stream.indexed_to END
    FROM unnest(%(pk)s::bigint[], %(depth)s::bigint[], %(first)s::text[], %(last)s::text[],
        %(oldest_at)s::timestamptz[], %(newest_at)s::timestamptz[], %(there)s::bool[],
        %(origin)s::text[], %(read_to)s::text[])
        AS sample (id, depth, first, last, oldest_at, newest_at, there, origin, read_to)
    WHERE stream.id = sample.id
      AND (stream.sampled_at IS NULL OR stream.sampled_at <= %(now)s)
    RETURNING stream.id
"""
_ARRIVED = """
    INSERT INTO breakers_depthminute AS kept (stream_id, minute, sampled_at, depth, most, arrived)
    VALUES (%(stream)s, date_trunc('minute', %(now)s::timestamptz), %(now)s, %(depth)s, %(depth)s,
            %(arrived)s)
    ON CONFLICT (stream_id, minute) DO UPDATE SET arrived = kept.arrived + excluded.arrived
"""


SAMPLE_CADENCE = 2 * MINUTE
"""Greatest age of a stream's sample while its server is sampled: a minute if nothing changes."""


def has_changed(stream: LetterStream, sample: StreamSample) -> bool:
    """Return True if the sample differs from the saved state of the stream."""
    recorded = (stream.gone_at is None, stream.depth, stream.first, stream.last)
    sampled = (sample.there, sample.depth, sample.first, sample.last)
    return stream.sampled_at is None or recorded != sampled


def record_sample(stream: LetterStream, sample: StreamSample, now: datetime) -> None:
    """Save a sample as the state of `stream`, and reload it. Waits for the lock of its row."""
    _write_samples([(stream, sample)], now, waits=True)
    stream.refresh_from_db()


def record_samples(sampled: Sequence[SampledStream], now: datetime) -> list[SampledStream]:
    """Save samples as the state of their streams; return the streams, reloaded, with their samples.

    Streams locked by another transaction are left out. A stream that already has a later sample is
    returned, but not updated. The rows of `sampled` must have been loaded before the samples were
    taken.
    """
    fresh = (
        LetterStream.objects.in_bulk(_write_samples(sampled, now, waits=False)) if sampled else {}
    )
    return [(fresh[one.pk], sample) for one, sample in sampled if one.pk in fresh]


@transaction.atomic
def record_outbox(
    failed: int, oldest_at: datetime | None, newest_at: datetime | None, *, now: datetime
) -> LetterStream:
    """Save the number of the outbox's failed messages as the depth of its stream."""
    row = streams.get_outbox_stream(now)
    locked = LetterStream.objects.select_for_update().get(pk=row.pk)
    sampled = (failed, oldest_at, newest_at)
    is_same = (locked.depth, locked.oldest_at, locked.newest_at) == sampled
    if is_same and not is_due(locked, now):
        return locked
    locked.arrived_total += max(0, failed - locked.depth)
    locked.depth, locked.oldest_at, locked.newest_at = sampled
    locked.over_since = (locked.over_since or now) if failed > ALARM_DEPTH else None
    locked.sampled_at = now
    locked.save()
    record_minute([locked.pk], now)
    if not is_same:
        live.notify_changed(TOPIC, str(locked))
    return locked


def is_due(stream: LetterStream, now: datetime) -> bool:
    """Return True if the current minute has no sample of the stream yet."""
    last = stream.sampled_at
    return last is None or last < now.replace(second=0, microsecond=0)


@transaction.atomic
def record_unchanged(unchanged: Sequence[LetterStream], now: datetime) -> None:
    """Record for the current minute that these streams still have the same depth.

    Open pages are notified of streams whose depth changed recently, as the growth they show
    changes.
    """
    pks = sorted(one.pk for one in unchanged)
    rows = LetterStream.objects.select_for_update(skip_locked=True).filter(pk__in=pks)
    mine = sorted(rows.order_by("pk").values_list("pk", flat=True))
    LetterStream.objects.filter(pk__in=mine).update(sampled_at=now)
    record_minute(mine, now)
    moving = {pk for pk, by in streams.growth_per_minute(unchanged, now - MINUTE).items() if by}
    live.notify_changed(TOPIC, *(str(one) for one in unchanged if one.pk in moving))


def record_minute(pks: Sequence[int], now: datetime) -> None:
    """Record the current depths of these streams in their :class:`DepthMinute` of this minute."""
    execute(_MINUTES, {"ids": list(pks), "now": now})


def record_arrivals(stream: LetterStream, added: Sequence[datetime | None], now: datetime) -> None:
    """Count these entries as arrived in this minute, except those older than the discovery."""
    if arrived := sum(at is None or at >= stream.found_at for at in added):
        values = {"stream": stream.pk, "depth": stream.depth, "arrived": arrived, "now": now}
        execute(_ARRIVED, values)


@transaction.atomic
def _write_samples(sampled: Sequence[SampledStream], now: datetime, *, waits: bool) -> list[int]:
    """Save samples by one statement; return the primary keys of the streams that it could lock.

    A stream with a later sample is locked, but not updated. If `waits` is False, streams locked by
    another transaction are skipped.
    """
    rows = LetterStream.objects.select_for_update(skip_locked=not waits)
    rows = rows.filter(pk__in=[one.pk for one, _ in sampled]).order_by("pk")
    mine = set(rows.values_list("pk", flat=True))
    sources = configured_sources()
    lines = [
        (
            one.pk,
            sample.depth,
            sample.first,
            sample.last,
            ids.added_at(sample.first) if sample.first else None,
            ids.added_at(sample.last) if sample.last else None,
            sample.there,
            (sources.origin_of(one.name) or one.origin)[:MAX_NAME_LENGTH],
            # The stream was created again if it has never assigned the last indexed id.
            one.indexed_to if sample.last_given < one.indexed_to else None,
        )
        for one, sample in sampled
        if one.pk in mine
    ]
    if not lines:
        return []
    columns = dict(zip(_COLUMNS, map(list, zip(*lines, strict=True)), strict=True))
    written = {pk for (pk,) in fetch_all(_SAMPLES, {**columns, "now": now, "limit": ALARM_DEPTH})}
    record_minute(sorted(written), now)
    live.notify_changed(TOPIC, *(str(one) for one, _ in sampled if one.pk in written))
    return sorted(mine)
