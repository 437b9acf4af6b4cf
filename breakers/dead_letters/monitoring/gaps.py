"""Detection of gaps: entries that another Redis client trimmed or deleted.

Such a client leaves index rows without entries. Index rows are always read before Redis is queried,
so an entry that is missing then was really deleted.
"""

import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Count, Max, Min, QuerySet

from breakers.dead_letters.letters import ids
from breakers.dead_letters.models import Gap, Letter, LetterStream
from breakers.dead_letters.redis_servers import samples, servers
from breakers.dead_letters.redis_servers.samples import StreamSample
from breakers.dead_letters.redis_servers.servers import ScriptCall
from controlplane.core.live import change_notices as live
from controlplane.core.sql import fetch_all

from . import stream_state
from .stream_state import SampledStream

AT_ONCE = 5000
BUDGET = 32 * 1024 * 1024  # bytes of payload that one script call may read
SETTLED_WITHIN = timedelta(minutes=1)
MERGE_WITHIN = timedelta(minutes=10)
"""Period in which adjacent missing entries are recorded as one gap."""

log = structlog.get_logger(__name__)

# Rows of letters with an open intent are left to its settlement. Letters that were removed through
# Switchgear are deleted from the index, but are no gap.
_FORGET = """
    DELETE FROM breakers_letter letter
    WHERE stream_id = %(stream)s AND position = ANY(%(positions)s) AND NOT EXISTS (
        SELECT FROM breakers_departure open WHERE open.stream_id = letter.stream_id
          AND open.position = letter.position AND open.state = 'intended')
    RETURNING position, EXISTS (
        SELECT FROM breakers_departure done WHERE done.stream_id = letter.stream_id
          AND done.position = letter.position AND done.state <> 'gone')
"""


def find_inconsistent(read: Sequence[SampledStream]) -> list[SampledStream]:
    """Return the completely indexed streams whose index differs from the sample of the stream.

    An index differs while letters are being removed, and after letters were deleted or reappeared.
    """
    indexed = [(one, sample) for one, sample in read if sample.last <= one.indexed_to]
    if not indexed:
        return []
    letters = Letter.objects.filter(stream__in=[one.pk for one, _ in indexed]).order_by()
    rows = letters.values("stream").annotate(count=Count("pk"), first=Min("position"))
    state = {row["stream"]: (row["count"], row["first"]) for row in rows}
    return [
        (one, sample)
        for one, sample in indexed
        if state.get(one.pk, (0, "")) != (sample.depth, sample.first)
    ]


def find_gaps(stream: LetterStream, now: datetime, *, seconds: float) -> bool:
    """Record deleted entries of a stream as gaps; return True if all of the stream was checked.

    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    before = stream.vanished_total
    is_complete = _compare_with_index(stream, now, time.monotonic() + seconds)
    stream.refresh_from_db()
    if (vanished := stream.vanished_total - before) > 0:
        log.warning("dead_letters.vanished", stream=str(stream), count=vanished)
    return is_complete


def _compare_with_index(stream: LetterStream, now: datetime, deadline: float) -> bool:
    index = stream.letters.aggregate(count=Count("pk"), upto=Max("position"))
    # An index that is built again has rows beyond `indexed_to`.
    upto = max(index["upto"] or "", stream.indexed_to)
    # Index and Redis may differ by open and just settled removals.
    intended = stream.departures.filter(state__in=["intended", "restoring"]).count()
    settled = stream.departures.filter(
        intended_at__gt=now - 2 * SETTLED_WITHIN, done_at__gt=now - SETTLED_WITHIN
    ).count()
    sample = samples.sample_stream(stream.server, stream.name)
    trimmed, is_complete = _delete_trimmed(stream, sample, upto, now, deadline)
    if not is_complete or sample.last > stream.indexed_to:
        return is_complete
    missing = index["count"] - trimmed - sample.depth
    if missing < 0:
        # Entries reappeared after a failover: index the stream again from its first entry.
        rows = LetterStream.objects.filter(pk=stream.pk, indexed_to=stream.indexed_to)
        rows.update(indexed_to="")
        return False
    return missing <= intended + settled or _compare_all(stream, upto, now, deadline)


def _delete_trimmed(
    stream: LetterStream, sample: StreamSample, upto: str, now: datetime, deadline: float
) -> tuple[int, bool]:
    """Delete index rows before the first entry; return how many, and False if time ran out."""
    below = Letter.objects.filter(stream=stream, position__lte=upto).order_by("position")
    if sample.depth:
        below = below.filter(position__lt=sample.first)
    done = 0
    for chunk in _iterate_chunks(below):
        done += _delete_missing(stream, chunk, now)
        if time.monotonic() > deadline:
            return done, False
    return done, True


def _compare_all(stream: LetterStream, upto: str, now: datetime, deadline: float) -> bool:
    """Delete all index rows without an entry in the stream; return False if time ran out."""
    rows = Letter.objects.filter(stream=stream, position__lte=upto).order_by("position")
    after = ""
    for chunk in _iterate_chunks(rows):
        existing = set(_iterate_positions(stream, after, chunk[-1]))
        if gone := [position for position in chunk if position not in existing]:
            _delete_missing(stream, gone, now)
        after = chunk[-1]
        if time.monotonic() > deadline:
            return False
    return True


def _iterate_chunks(rows: QuerySet[Letter]) -> Iterator[list[str]]:
    """Yield the positions of index rows in chunks of some thousands, in order of position."""
    after = ""
    while chunk := list(
        rows.filter(position__gt=after).values_list("position", flat=True)[:AT_ONCE]
    ):
        yield chunk
        after = chunk[-1]


def _iterate_positions(stream: LetterStream, after: str, last: str) -> Iterator[str]:
    """Yield the positions of existing entries after `after` up to `last`."""
    begin, end = (ids.to_entry_id(after) if after else ""), ids.to_entry_id(last)
    while True:
        call = ScriptCall([stream.name], [begin, end, AT_ONCE, BUDGET])
        entry_ids, more = servers.get_server(stream.server).run("walk", call)
        yield from (ids.to_position(one.decode()) for one in entry_ids)
        if not more or not entry_ids:
            return
        begin = entry_ids[-1].decode()


@transaction.atomic
def _delete_missing(stream: LetterStream, positions: Sequence[str], now: datetime) -> int:
    """Delete the index rows of missing entries; return how many.

    Entries that Switchgear did not remove itself are recorded as a gap.
    """
    locked = LetterStream.objects.select_for_update().get(pk=stream.pk)
    values: dict[str, Any] = {"stream": stream.pk, "positions": list(positions)}
    deleted = fetch_all(_FORGET, values)
    vanished = sorted(position for position, was_removed_by_us in deleted if not was_removed_by_us)
    if vanished:
        _record_gap(locked, vanished, now)
    return len(deleted)


def _record_gap(stream: LetterStream, vanished: Sequence[str], now: datetime) -> None:
    stream.vanished_total += len(vanished)
    stream.save(update_fields=["vanished_total"])
    first, last, count = vanished[0], vanished[-1], len(vanished)
    latest = stream.gaps.filter(noticed_at__gt=now - MERGE_WITHIN).order_by("-pk").first()
    if latest is not None:
        begin, end = min(latest.first, first), max(latest.last, last)
        if not stream.letters.filter(position__gt=begin, position__lt=end).exists():
            latest.first, latest.last, latest.count = begin, end, latest.count + count
            latest.save(update_fields=["first", "last", "count"])
            live.notify_changed(stream_state.TOPIC, str(stream))
            return
    Gap.objects.create(stream=stream, first=first, last=last, count=count, noticed_at=now)
    live.notify_changed(stream_state.TOPIC, str(stream))
