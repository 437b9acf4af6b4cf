"""The index of a stream: every entry read once, forward, and written down in bounded batches.

Batches are read without a lock. Whoever finds, under the stream's lock, that another has gone on
meanwhile, reads again from there; so it may run anywhere, any number of times at once.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction

from breakers.dead_letters.finding import gaps, standing
from breakers.dead_letters.letters import entries, fingerprints, ids, redaction
from breakers.dead_letters.letters.entries import Entry
from breakers.dead_letters.places import samples, servers
from breakers.dead_letters.places.samples import Sample
from breakers.dead_letters.places.servers import Call
from breakers.models.dead_letters import LetterStream

AT_ONCE = 1000
BUDGET = 8 * 1024 * 1024  # bytes of payload that one look goes through
VALUE_BYTES = 2048
FIELDS = sorted({*entries.METADATA, entries.RETRY_COUNT})
LOOKS_FOR = 0.2  # seconds, for what vanished, at least
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""What an entry says of when it failed is believed in between."""
SETTLED_WITHIN = timedelta(minutes=10)

_GROUPS = """
    INSERT INTO breakers_lettergroup AS known
        (stream_id, fingerprint, error_type, pattern, sample, first_at, last_at)
    SELECT %(stream)s, seen.* FROM unnest(%(fingerprints)s::text[], %(types)s::text[],
        %(patterns)s::text[], %(samples)s::text[], %(first)s::timestamptz[],
        %(last)s::timestamptz[]) AS seen
    ON CONFLICT (stream_id, fingerprint) DO UPDATE SET
        first_at = least(known.first_at, excluded.first_at),
        last_at = greatest(known.last_at, excluded.last_at)
    RETURNING fingerprint, id
"""
# An entry that was read here may have left through us before the lock was ours.
_LETTERS = """
    INSERT INTO breakers_letter (stream_id, position, group_id, error, consumer_group, attempts,
                                 retries, failed_at, size_bytes)
    SELECT %(stream)s, seen.* FROM unnest(%(positions)s::text[], %(groups)s::bigint[],
        %(errors)s::text[], %(consumers)s::text[], %(attempts)s::int[], %(retries)s::int[],
        %(failed)s::timestamptz[], %(sizes)s::bigint[]) AS seen (position)
    WHERE NOT EXISTS (
        SELECT FROM breakers_departure departed
        WHERE departed.stream_id = %(stream)s AND departed.position = seen.position
          AND departed.done_at > %(settled)s)
    ON CONFLICT (stream_id, position) DO NOTHING
    RETURNING position
"""
_DAYS = """
    INSERT INTO breakers_groupday AS known (group_id, day, arrived)
    SELECT * FROM unnest(%(groups)s::bigint[], %(days)s::date[], %(counts)s::bigint[])
    ON CONFLICT (group_id, day) DO UPDATE SET arrived = known.arrived + excluded.arrived
"""


@dataclass(frozen=True)
class Seen:
    """What the index keeps of one entry."""

    position: str
    fingerprint: str
    error_type: str
    pattern: str
    error: str
    consumer_group: str
    attempts: int | None
    retries: int
    added_at: datetime | None
    failed_at: datetime
    size_bytes: int


def catch_up(stream: LetterStream, now: datetime, *, seconds: float = 1.0) -> bool:
    """Bring what is known of a stream up to date, its depth and what vanished too, and `stream`
    with it; returns whether all of it is known now. It ends after about `seconds`.

    Raises :class:`servers.ServerAway` and :class:`servers.ServerRefused`.
    """
    if stream.source == LetterStream.Source.OUTBOX:
        return True
    sample = samples.one(stream.server, stream.name)
    is_news = standing.is_news(stream, sample)
    if is_news:
        standing.note(stream, sample, now)
    elif sample.last <= stream.indexed_to:
        return True
    return go_on(stream, sample, now, seconds=seconds)


def go_on(stream: LetterStream, sample: Sample, now: datetime, *, seconds: float) -> bool:
    """Read on from where the index ends, then look for what vanished; returns whether it is all
    known. `stream` is as `sample` found it."""
    deadline = time.monotonic() + seconds
    for batch in _batches(stream, now):
        _store(stream, batch, now)
        if time.monotonic() > deadline:
            break
    stream.refresh_from_db()
    if stream.indexed_to < sample.last:
        return False
    return gaps.look(stream, now, seconds=max(LOOKS_FOR, deadline - time.monotonic()))


@dataclass(frozen=True)
class _Batch:
    after: str
    seen: Sequence[Seen]


def _batches(stream: LetterStream, now: datetime) -> Iterator[_Batch]:
    """Batches from where the index ends by then, until the stream does."""
    while True:
        stream.refresh_from_db(fields=["indexed_to"])
        after = stream.indexed_to
        begin = ids.entry_id(after) if after else ""
        call = Call([stream.name], [begin, VALUE_BYTES, AT_ONCE, BUDGET, *FIELDS])
        given, more = servers.of(stream.server).run("index", call)
        if given:
            yield _Batch(after, [_seen(one, now) for one in given])
        if not more:
            return


def _seen(given: Any, now: datetime) -> Seen:
    entry_id, size_bytes, flat = given
    entry = Entry(entry_id.decode(), tuple(zip(flat[::2], flat[1::2], strict=True)))
    error_type = entry.error_type[: fingerprints.LONGEST_TYPE]
    # What is hidden is not kept here either, nor told by what is.
    error = redaction.configured_redaction().error(entry)
    position = entry.position
    added_at = ids.added_at(position)
    failed_at = entry.failed_at
    if failed_at is None or not EARLIEST <= failed_at <= LATEST:
        failed_at = added_at or now
    return Seen(
        position=position,
        fingerprint=fingerprints.of(error_type, entry.error).digest,
        error_type=error_type,
        pattern=fingerprints.of(error_type, error).pattern,
        error=error[: fingerprints.LONGEST],
        consumer_group=entry.group[:200],
        attempts=entry.attempts,
        retries=entry.retries,
        added_at=added_at,
        failed_at=failed_at,
        size_bytes=int(size_bytes),
    )


@transaction.atomic
def _store(stream: LetterStream, batch: _Batch, now: datetime) -> None:
    locked = LetterStream.objects.select_for_update().get(pk=stream.pk)
    if locked.indexed_to != batch.after:
        return
    groups = _keep_groups(locked, batch.seen)
    new = _keep_letters(locked, batch.seen, groups, now)
    _count(new, groups, now)
    locked.indexed_to = batch.seen[-1].position
    locked.arrived_total += len(new)
    locked.save(update_fields=["indexed_to", "arrived_total"])
    standing.arrived(locked, [one.added_at for one in new], now)


def _keep_groups(stream: LetterStream, seen: Sequence[Seen]) -> dict[str, int]:
    """Primary keys by fingerprint. In order, so that no two writers wait for each other."""
    times: dict[str, tuple[datetime, datetime]] = {}
    alike: dict[str, Seen] = {}
    for one in seen:
        alike.setdefault(one.fingerprint, one)
        first, last = times.get(one.fingerprint, (one.failed_at, one.failed_at))
        times[one.fingerprint] = min(first, one.failed_at), max(last, one.failed_at)
    rows = [alike[fingerprint] for fingerprint in sorted(alike)]
    values = {
        "stream": stream.pk,
        "fingerprints": [one.fingerprint for one in rows],
        "types": [one.error_type for one in rows],
        "patterns": [one.pattern for one in rows],
        "samples": [one.error for one in rows],
        "first": [times[one.fingerprint][0] for one in rows],
        "last": [times[one.fingerprint][1] for one in rows],
    }
    return dict(_rows(_GROUPS, values))


def _keep_letters(
    stream: LetterStream, seen: Sequence[Seen], groups: dict[str, int], now: datetime
) -> list[Seen]:
    """Those of them that were not known yet."""
    values = {
        "stream": stream.pk,
        "settled": now - SETTLED_WITHIN,
        "positions": [one.position for one in seen],
        "groups": [groups[one.fingerprint] for one in seen],
        "errors": [one.error for one in seen],
        "consumers": [one.consumer_group for one in seen],
        "attempts": [one.attempts for one in seen],
        "retries": [one.retries for one in seen],
        "failed": [one.failed_at for one in seen],
        "sizes": [one.size_bytes for one in seen],
    }
    new = {position for (position,) in _rows(_LETTERS, values)}
    return [one for one in seen if one.position in new]


def _count(new: Sequence[Seen], groups: dict[str, int], now: datetime) -> None:
    """How many of each group arrived on which day."""
    days: dict[tuple[int, Any], int] = {}
    for one in new:
        day = min(one.added_at or now, now).astimezone(UTC).date()
        key = (groups[one.fingerprint], day)
        days[key] = days.get(key, 0) + 1
    if days:
        kept = sorted(days)
        values = {
            "groups": [group for group, _ in kept],
            "days": [day for _, day in kept],
            "counts": [days[key] for key in kept],
        }
        with connection.cursor() as cursor:
            cursor.execute(_DAYS, values)


def _rows(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
