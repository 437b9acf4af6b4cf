"""The indexer: it reads every entry of a stream once, forward, in bounded batches.

Batches are read without a lock. If another process has indexed meanwhile, which is checked under
the stream's lock, reading starts again from there; so it may run any number of times at once.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.db import connection, transaction

from breakers.dead_letters.letters import entries, fingerprints, ids, redaction
from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.redaction import Redaction
from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.redis_servers import samples, servers
from breakers.dead_letters.redis_servers.samples import StreamSample
from breakers.dead_letters.redis_servers.servers import ScriptCall
from breakers.sql import fetch_all

from . import gaps, stream_state

AT_ONCE = 1000
BUDGET = 8 * 1024 * 1024  # bytes of payload that one look goes through
MAX_VALUE_BYTES = 2048
FIELDS = sorted({*entries.METADATA, entries.RETRY_COUNT})
MIN_GAP_SECONDS = 0.2  # seconds, for what vanished, at least
SETTLED_WITHIN = timedelta(seconds=10)
"""Longest time from the beginning of a removal, which is its recorded time, to its settlement."""

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
# An entry that was read here may have left through us before the lock was ours. One that left long
# before is back, as a server has forgotten that it went.
_LETTERS = """
    INSERT INTO breakers_letter (stream_id, position, group_id, error, consumer_group, attempts,
                                 retries, failed_at, size_bytes)
    SELECT %(stream)s, seen.* FROM json_to_recordset(%(rows)s) AS seen (
        position text, group_id bigint, error text, consumer_group text, attempts int, retries int,
        failed_at timestamptz, size_bytes bigint)
    WHERE NOT EXISTS (
        SELECT FROM breakers_departure departed
        WHERE departed.stream_id = %(stream)s AND departed.position = seen.position
          AND departed.done_at > %(settled)s)
    ON CONFLICT (stream_id, position) DO NOTHING
    RETURNING position
"""
# Of what is being put back the new id is not known yet, but what it is like.
_RESTORED = """
    SELECT state, new_id, fingerprint, size_bytes FROM breakers_departure
    WHERE stream_id = %(stream)s AND (
        state = 'restoring' OR state = 'restored' AND new_id = ANY(%(ids)s::text[]))
"""
_DAYS = """
    INSERT INTO breakers_groupday AS known (group_id, day, arrived)
    SELECT * FROM unnest(%(groups)s::bigint[], %(days)s::date[], %(counts)s::bigint[])
    ON CONFLICT (group_id, day) DO UPDATE SET arrived = known.arrived + excluded.arrived
"""


@dataclass(frozen=True)
class IndexedEntry:
    """The indexed fields of an entry."""

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
    """Update depth, index and gaps of a stream, and the instance.

    Return True if the index is complete. It ends after about `seconds`. Raises
    :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    if stream.source == LetterStream.Source.OUTBOX:
        return True
    sample = samples.sample_stream(stream.server, stream.name)
    is_news = stream_state.has_changed(stream, sample)
    if is_news:
        stream_state.record_sample(stream, sample, now)
    elif sample.last <= stream.indexed_to:
        return True
    return index_and_check(stream, sample, now, seconds=seconds)


def index_and_check(
    stream: LetterStream, sample: StreamSample, now: datetime, *, seconds: float
) -> bool:
    """Index new entries, then look for gaps; return True if the index is complete.

    `stream` is as of `sample`.
    """
    deadline = time.monotonic() + seconds
    if not read_new_entries(stream, sample, now, seconds=seconds):
        return False
    if not gaps.find_inconsistent([(stream, sample)]):
        return True
    return gaps.find_gaps(stream, now, seconds=max(MIN_GAP_SECONDS, deadline - time.monotonic()))


def read_new_entries(
    stream: LetterStream, sample: StreamSample, now: datetime, *, seconds: float
) -> bool:
    """Index new entries; return True if the index reaches `sample`."""
    deadline = time.monotonic() + seconds
    for batch in _read_batches(stream, now):
        _store_batch(stream, batch, now)
        if time.monotonic() > deadline:
            break
    stream.refresh_from_db()
    return stream.indexed_to >= sample.last


@dataclass(frozen=True)
class _Batch:
    after: str
    seen: Sequence[IndexedEntry]


def _read_batches(stream: LetterStream, now: datetime) -> Iterator[_Batch]:
    """Yield batches from the end of the index to the end of the stream."""
    while True:
        stream.refresh_from_db(fields=["indexed_to"])
        after = stream.indexed_to
        begin = ids.to_entry_id(after) if after else ""
        call = ScriptCall([stream.name], [begin, MAX_VALUE_BYTES, AT_ONCE, BUDGET, *FIELDS])
        given, more = servers.get_server(stream.server).run("index", call)
        if given:
            hiding = redaction.configured_redaction()
            yield _Batch(after, [_index_entry(one, hiding, now) for one in given])
        if not more:
            return


def _index_entry(given: Any, hiding: Redaction, now: datetime) -> IndexedEntry:
    """Return the fields to index, redacted; no digest of a hidden value is stored."""
    entry_id, size_bytes, flat = given
    entry = LetterEntry(entry_id.decode(), tuple(zip(flat[::2], flat[1::2], strict=True)))
    found = hiding.fingerprint(entry)
    position = entry.position
    return IndexedEntry(
        position=position,
        fingerprint=found.digest,
        error_type=hiding.error_type(entry)[: fingerprints.MAX_TYPE_LENGTH],
        pattern=found.pattern,
        error=hiding.error(entry)[: fingerprints.MAX_ERROR_LENGTH],
        consumer_group=hiding.group(entry)[:200],
        attempts=entry.attempts,
        retries=entry.retries,
        added_at=ids.added_at(position),
        failed_at=entry.plausible_failed_at or now,
        size_bytes=int(size_bytes),
    )


@transaction.atomic
def _store_batch(stream: LetterStream, batch: _Batch, now: datetime) -> None:
    locked = LetterStream.objects.select_for_update().get(pk=stream.pk)
    if locked.indexed_to != batch.after:
        return
    groups = _upsert_groups(locked, batch.seen)
    new = _insert_letters(locked, batch.seen, groups, now)
    came = _exclude_restored(locked, new)
    _count_by_day(came, groups, now)
    locked.indexed_to = batch.seen[-1].position
    locked.arrived_total += len(came)
    locked.save(update_fields=["indexed_to", "arrived_total"])
    stream_state.record_arrivals(locked, [one.added_at for one in came], now)


def _upsert_groups(stream: LetterStream, seen: Sequence[IndexedEntry]) -> dict[str, int]:
    """Return the primary keys by fingerprint. Rows are written in order to avoid deadlocks."""
    times: dict[str, tuple[datetime, datetime]] = {}
    alike: dict[str, IndexedEntry] = {}
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
    return dict(fetch_all(_GROUPS, values))


def _insert_letters(
    stream: LetterStream, seen: Sequence[IndexedEntry], groups: dict[str, int], now: datetime
) -> list[IndexedEntry]:
    """Return the entries that were not indexed yet."""
    rows = [
        {
            "position": one.position,
            "group_id": groups[one.fingerprint],
            "error": one.error,
            "consumer_group": one.consumer_group,
            "attempts": one.attempts,
            "retries": one.retries,
            "failed_at": one.failed_at,
            "size_bytes": one.size_bytes,
        }
        for one in seen
    ]
    # As one text: a thousand values each in arrays take several times as long to write out.
    values = {
        "stream": stream.pk,
        "settled": now - SETTLED_WITHIN,
        "rows": orjson.dumps(rows).decode(),
    }
    new = {position for (position,) in fetch_all(_LETTERS, values)}
    return [one for one in seen if one.position in new]


def _exclude_restored(stream: LetterStream, new: Sequence[IndexedEntry]) -> list[IndexedEntry]:
    """Return the entries that were not restored from the archive, which had arrived before."""
    if not new:
        return []
    ids_of = {one.position: ids.to_entry_id(one.position) for one in new}
    rows = fetch_all(_RESTORED, {"stream": stream.pk, "ids": list(ids_of.values())})
    if not rows:
        return list(new)
    known = {new_id for state, new_id, *_ in rows if state == "restored"}
    alike = Counter((print_, size) for state, _, print_, size in rows if state == "restoring")
    came = []
    for one in new:
        if ids_of[one.position] in known:
            continue
        if alike[one.fingerprint, one.size_bytes] > 0:
            alike[one.fingerprint, one.size_bytes] -= 1
            continue
        came.append(one)
    return came


def _count_by_day(new: Sequence[IndexedEntry], groups: dict[str, int], now: datetime) -> None:
    """Count the arrivals of each group by day."""
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
