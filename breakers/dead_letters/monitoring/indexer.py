"""Indexer that reads every entry of a stream once, forward, in bounded batches.

A batch is read without a lock. Before it is stored, the indexer checks under the stream's lock that
no other process has indexed meanwhile, so any number of processes may index a stream.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.db import transaction
from django.db.models import F

from breakers.dead_letters.letters import entries, fingerprints, ids
from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import LetterStream, Replay
from breakers.dead_letters.redis_servers import samples, servers
from breakers.dead_letters.redis_servers.samples import StreamSample
from breakers.dead_letters.redis_servers.servers import ScriptCall
from controlplane.core.errors import NotFound
from controlplane.core.live import change_notices
from controlplane.core.sql import execute, fetch_all

from . import gaps, stream_state

AT_ONCE = 1000
BUDGET = 8 * 1024 * 1024  # bytes of payload that one script call may read
MAX_VALUE_BYTES = 2048
FIELDS = sorted({*entries.METADATA, entries.RETRY_COUNT, entries.RETRY_OF})
MIN_GAP_SECONDS = 0.2
SETTLED_WITHIN = timedelta(seconds=10)
"""Longest time from the declaration of a removal (its `done_at`) to its settlement."""

_GROUPS = """
    INSERT INTO breakers_lettergroup AS known
        (stream_id, fingerprint, error_type, pattern, sample, first_at, last_at)
    SELECT %(stream)s, batch.* FROM unnest(%(fingerprints)s::text[], %(types)s::text[],
        %(patterns)s::text[], %(samples)s::text[], %(first)s::timestamptz[],
        %(last)s::timestamptz[]) AS batch
    ON CONFLICT (stream_id, fingerprint) DO UPDATE SET
        first_at = least(known.first_at, excluded.first_at),
        last_at = greatest(known.last_at, excluded.last_at)
    RETURNING fingerprint, id
"""
# An entry may have been removed through Switchgear between the read and the lock. An entry that
# was removed long before has reappeared after a failover of its server.
_LETTERS = """
    INSERT INTO breakers_letter (stream_id, position, group_id, error, consumer_group, attempts,
                                 retries, failed_at, size_bytes)
    SELECT %(stream)s, batch.* FROM json_to_recordset(%(rows)s) AS batch (
        position text, group_id bigint, error text, consumer_group text, attempts int, retries int,
        failed_at timestamptz, size_bytes bigint)
    WHERE NOT EXISTS (
        SELECT FROM breakers_departure departed
        WHERE departed.stream_id = %(stream)s AND departed.position = batch.position
          AND departed.done_at > %(settled)s)
    ON CONFLICT (stream_id, position) DO NOTHING
    RETURNING position
"""
# A restore in progress has no new id yet, so it is identified by fingerprint and size.
_RESTORED = """
    SELECT state, new_id, fingerprint, size_bytes FROM breakers_departure
    WHERE stream_id = %(stream)s AND (
        state = 'restoring' OR state = 'restored' AND new_id = ANY(%(ids)s::text[]))
"""
_COLUMNS = ["position", "error", "consumer_group", "attempts", "retries", "failed_at", "size_bytes"]
_DAYS = """
    INSERT INTO breakers_groupday AS known (group_id, day, arrived)
    SELECT * FROM unnest(%(groups)s::bigint[], %(days)s::date[], %(counts)s::bigint[])
    ON CONFLICT (group_id, day) DO UPDATE SET arrived = known.arrived + excluded.arrived
"""

# A retried letter is counted once, though a message delivered twice may fail again twice. A letter
# may be back before its retry is settled, so the state of the departure does not matter.
_FAILED_AGAIN = """
    UPDATE breakers_departure AS departure
    SET failed_again_at = batch.failed_at, failed_again_as = batch.position
    FROM unnest(%(positions)s::text[], %(retried)s::text[], %(failed_at)s::timestamptz[])
        AS batch (position, retried, failed_at)
    WHERE departure.stream_id = %(stream)s AND departure.position = batch.retried
      AND departure.action = 'retry' AND departure.failed_again_at IS NULL
    RETURNING departure.job_id
"""


@dataclass(frozen=True)
class IndexedEntry:
    position: str
    fingerprint: str
    error_type: str
    pattern: str
    error: str
    consumer_group: str
    attempts: int | None
    retries: int
    retry_of: str
    added_at: datetime | None
    failed_at: datetime
    size_bytes: int


def catch_up(stream: LetterStream, now: datetime, *, seconds: float = 1.0) -> bool:
    """Update the depth, the index and the gaps of a stream, and reload `stream` from the database.

    Return True if the index is complete. Ends after about `seconds`. Raises
    :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    if stream.source == LetterStream.Source.OUTBOX:
        return True
    sample = samples.sample_stream(stream.server, stream.name)
    if stream_state.has_changed(stream, sample):
        stream_state.record_sample(stream, sample, now)
    elif sample.last <= stream.indexed_to:
        return True
    return index_and_check(stream, sample, now, seconds=seconds)


def index_and_check(
    stream: LetterStream, sample: StreamSample, now: datetime, *, seconds: float
) -> bool:
    """Index new entries, then search for gaps; return True if both were finished in time.

    `sample` must already be saved as the state of `stream`.
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
    """Index new entries; return True if the index reaches the last entry of `sample`."""
    deadline = time.monotonic() + seconds
    for after, batch in _read_batches(stream, now):
        _store_batch(stream, after, batch, now)
        if time.monotonic() > deadline:
            break
    stream.refresh_from_db()
    return stream.indexed_to >= sample.last


def _read_batches(stream: LetterStream, now: datetime) -> Iterator[tuple[str, list[IndexedEntry]]]:
    """Yield batches of entries to index, each with the position after which it was read."""
    while True:
        stream.refresh_from_db(fields=["indexed_to"])
        after = stream.indexed_to
        begin = ids.to_entry_id(after) if after else ""
        call = ScriptCall([stream.name], [begin, MAX_VALUE_BYTES, AT_ONCE, BUDGET, *FIELDS])
        replies, more = servers.get_server(stream.server).run("index", call)
        if replies:
            yield after, [_parse_entry(one, now) for one in replies]
        if not more:
            return


def _parse_entry(reply: Any, now: datetime) -> IndexedEntry:
    """Return the index data of an entry; the fingerprint is that of the redacted error."""
    entry_id, size_bytes, flat = reply
    entry = LetterEntry(entry_id.decode(), tuple(zip(flat[::2], flat[1::2], strict=True)))
    redaction = configured_redaction()
    fingerprint = redaction.fingerprint(entry)
    position = entry.position
    return IndexedEntry(
        position=position,
        fingerprint=fingerprint.digest,
        error_type=redaction.error_type(entry)[: fingerprints.MAX_TYPE_LENGTH],
        pattern=fingerprint.pattern,
        error=redaction.error(entry)[: fingerprints.MAX_ERROR_LENGTH],
        consumer_group=redaction.group(entry)[:200],
        attempts=entry.attempts,
        retries=entry.retries,
        retry_of=_parse_retry_of(entry),
        added_at=ids.added_at(position),
        failed_at=entry.plausible_failed_at or now,
        size_bytes=int(size_bytes),
    )


def _parse_retry_of(entry: LetterEntry) -> str:
    """Return the position of the letter that was retried before; empty without a valid one."""
    try:
        return ids.to_position(entry.retry_of) if entry.retry_of else ""
    except NotFound:  # A producer may write anything into the field.
        return ""


@transaction.atomic
def _store_batch(
    stream: LetterStream, after: str, batch: Sequence[IndexedEntry], now: datetime
) -> None:
    locked = LetterStream.objects.select_for_update().get(pk=stream.pk)
    if locked.indexed_to != after:
        return
    groups = _upsert_groups(locked, batch)
    new = _insert_letters(locked, batch, groups, now)
    _record_failed_again(locked, new)
    arrived = _exclude_restored(locked, new)
    _count_by_day(arrived, groups, now)
    locked.indexed_to = batch[-1].position
    locked.arrived_total += len(arrived)
    locked.save(update_fields=["indexed_to", "arrived_total"])
    stream_state.record_arrivals(locked, [one.added_at for one in arrived], now)


def _upsert_groups(stream: LetterStream, batch: Sequence[IndexedEntry]) -> dict[str, int]:
    """Insert or update the error groups of the entries; return primary keys by fingerprint."""
    alike: dict[str, list[IndexedEntry]] = defaultdict(list)
    for one in batch:
        alike[one.fingerprint].append(one)
    groups = [alike[fingerprint] for fingerprint in sorted(alike)]
    values = {
        "stream": stream.pk,
        "fingerprints": [group[0].fingerprint for group in groups],
        "types": [group[0].error_type for group in groups],
        "patterns": [group[0].pattern for group in groups],
        "samples": [group[0].error for group in groups],
        "first": [min(one.failed_at for one in group) for group in groups],
        "last": [max(one.failed_at for one in group) for group in groups],
    }
    return dict(fetch_all(_GROUPS, values))


def _insert_letters(
    stream: LetterStream, batch: Sequence[IndexedEntry], groups: dict[str, int], now: datetime
) -> list[IndexedEntry]:
    """Insert the index rows that don't exist yet; return the entries of the inserted rows."""
    rows = [
        {"group_id": groups[one.fingerprint], **{name: getattr(one, name) for name in _COLUMNS}}
        for one in batch
    ]
    # One JSON text takes a fraction of the time of arrays with a thousand values each.
    text = orjson.dumps(rows).decode()
    values = {"stream": stream.pk, "settled": now - SETTLED_WITHIN, "rows": text}
    new = {position for (position,) in fetch_all(_LETTERS, values)}
    return [one for one in batch if one.position in new]


def _record_failed_again(stream: LetterStream, new: Sequence[IndexedEntry]) -> None:
    """Record in the archive, and in their bulk jobs, which retried letters have failed again."""
    back = [one for one in new if one.retry_of]
    if not back:
        return
    values = {
        "stream": stream.pk,
        "positions": [one.position for one in back],
        "retried": [one.retry_of for one in back],
        "failed_at": [one.failed_at for one in back],
    }
    jobs = Counter(job for (job,) in fetch_all(_FAILED_AGAIN, values) if job is not None)
    for job, count in sorted(jobs.items()):
        Replay.objects.filter(pk=job).update(failed_again=F("failed_again") + count)
    change_notices.notify_changed("dlq", str(stream), *(f"job:{job}" for job in jobs))


def _exclude_restored(stream: LetterStream, new: Sequence[IndexedEntry]) -> list[IndexedEntry]:
    """Return the new entries without restored letters, whose first arrival was counted already."""
    if not new:
        return []
    entry_ids = [ids.to_entry_id(one.position) for one in new]
    rows = fetch_all(_RESTORED, {"stream": stream.pk, "ids": entry_ids})
    if not rows:
        return list(new)
    restored = {new_id for state, new_id, *_ in rows if state == "restored"}
    restoring = Counter((digest, size) for state, _, digest, size in rows if state == "restoring")
    arrived = []
    for one, entry_id in zip(new, entry_ids, strict=True):
        key = (one.fingerprint, one.size_bytes)
        if entry_id in restored:
            continue
        if restoring[key] > 0:
            restoring[key] -= 1
            continue
        arrived.append(one)
    return arrived


def _count_by_day(new: Sequence[IndexedEntry], groups: dict[str, int], now: datetime) -> None:
    days = Counter(
        (groups[one.fingerprint], min(one.added_at or now, now).astimezone(UTC).date())
        for one in new
    )
    if days:
        keys = sorted(days)
        groups_column, days_column = zip(*keys, strict=True)
        counts = [days[key] for key in keys]
        execute(_DAYS, {"groups": list(groups_column), "days": list(days_column), "counts": counts})
