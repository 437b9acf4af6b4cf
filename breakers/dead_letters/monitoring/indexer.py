"""The index of a stream: every entry read once, forward, and written down in bounded batches.

Batches are read without a lock. Whoever finds, under the stream's lock, that another has gone on
meanwhile, reads again from there; so it may run anywhere, any number of times at once.
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
from breakers.dead_letters.letters.entries import Entry
from breakers.dead_letters.letters.redaction import Redaction
from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.redis_servers import samples, servers
from breakers.dead_letters.redis_servers.samples import Sample
from breakers.dead_letters.redis_servers.servers import Call

from . import gaps, stream_state

AT_ONCE = 1000
BUDGET = 8 * 1024 * 1024  # bytes of payload that one look goes through
VALUE_BYTES = 2048
FIELDS = sorted({*entries.METADATA, entries.RETRY_COUNT})
LOOKS_FOR = 0.2  # seconds, for what vanished, at least
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""What an entry says of when it failed is believed in between."""
LATELY = timedelta(seconds=10)
"""Who settles what left says of it the moment when they began."""

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
    is_news = stream_state.is_news(stream, sample)
    if is_news:
        stream_state.note(stream, sample, now)
    elif sample.last <= stream.indexed_to:
        return True
    return go_on(stream, sample, now, seconds=seconds)


def go_on(stream: LetterStream, sample: Sample, now: datetime, *, seconds: float) -> bool:
    """Read on from where the index ends, then look for what vanished; returns whether it is all
    known. `stream` is as `sample` found it."""
    deadline = time.monotonic() + seconds
    if not read_on(stream, sample, now, seconds=seconds):
        return False
    if not gaps.doubtful([(stream, sample)]):
        return True
    return gaps.look(stream, now, seconds=max(LOOKS_FOR, deadline - time.monotonic()))


def read_on(stream: LetterStream, sample: Sample, now: datetime, *, seconds: float) -> bool:
    """Read on from where the index ends; returns whether it has come as far as `sample` has."""
    deadline = time.monotonic() + seconds
    for batch in _batches(stream, now):
        _store(stream, batch, now)
        if time.monotonic() > deadline:
            break
    stream.refresh_from_db()
    return stream.indexed_to >= sample.last


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
            hiding = redaction.configured_redaction()
            yield _Batch(after, [_seen(one, hiding, now) for one in given])
        if not more:
            return


def _seen(given: Any, hiding: Redaction, now: datetime) -> Seen:
    """What is hidden is not kept here either, nor told by what is."""
    entry_id, size_bytes, flat = given
    entry = Entry(entry_id.decode(), tuple(zip(flat[::2], flat[1::2], strict=True)))
    found = hiding.fingerprint(entry)
    position = entry.position
    added_at = ids.added_at(position)
    failed_at = entry.failed_at
    if failed_at is None or not EARLIEST <= failed_at <= LATEST:
        failed_at = added_at or now
    return Seen(
        position=position,
        fingerprint=found.digest,
        error_type=hiding.error_type(entry)[: fingerprints.MAX_TYPE_LENGTH],
        pattern=found.pattern,
        error=hiding.error(entry)[: fingerprints.MAX_ERROR_LENGTH],
        consumer_group=hiding.group(entry)[:200],
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
    came = _without_restored(locked, new)
    _count(came, groups, now)
    locked.indexed_to = batch.seen[-1].position
    locked.arrived_total += len(came)
    locked.save(update_fields=["indexed_to", "arrived_total"])
    stream_state.arrived(locked, [one.added_at for one in came], now)


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
    values = {"stream": stream.pk, "settled": now - LATELY, "rows": orjson.dumps(rows).decode()}
    new = {position for (position,) in _rows(_LETTERS, values)}
    return [one for one in seen if one.position in new]


def _without_restored(stream: LetterStream, new: Sequence[Seen]) -> list[Seen]:
    """Those that nobody put back from the archive: these had arrived before."""
    if not new:
        return []
    ids_of = {one.position: ids.entry_id(one.position) for one in new}
    rows = _rows(_RESTORED, {"stream": stream.pk, "ids": list(ids_of.values())})
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
