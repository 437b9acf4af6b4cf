"""Gaps: entries that somebody else removed from a stream, detected and counted.

A producer that trims its stream, or a person with a Redis client, leaves index rows without
entries. Rows are always read before Redis is asked, so an entry that is missing then is really
gone.
"""

import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Count, Max, Min

from breakers.dead_letters.letters import ids
from breakers.dead_letters.models import Departure, Gap, Letter, LetterStream
from breakers.dead_letters.redis_servers import samples, servers
from breakers.dead_letters.redis_servers.samples import StreamSample
from breakers.dead_letters.redis_servers.servers import ScriptCall
from breakers.sql import fetch_all
from controlplane.core.live import change_notices as live

from . import stream_state

AT_ONCE = 5000
BUDGET = 32 * 1024 * 1024  # bytes of payload that one look goes through
SETTLED_WITHIN = timedelta(minutes=1)
MERGE_WITHIN = timedelta(minutes=10)
"""Time within which adjacent missing entries are recorded as one gap."""

log = structlog.get_logger(__name__)

# Those that are about to leave through us are whoever's who is at it; those that did leave are no
# gap, whether their row had been deleted by then or not.
_FORGET = """
    DELETE FROM breakers_letter letter
    WHERE stream_id = %(stream)s AND position = ANY(%(positions)s) AND NOT EXISTS (
        SELECT FROM breakers_departure open WHERE open.stream_id = letter.stream_id
          AND open.position = letter.position AND open.state = 'intended')
    RETURNING position, EXISTS (
        SELECT FROM breakers_departure done WHERE done.stream_id = letter.stream_id
          AND done.position = letter.position AND done.state <> 'gone')
"""


def find_inconsistent(
    read: Sequence[tuple[LetterStream, StreamSample]],
) -> list[tuple[LetterStream, StreamSample]]:
    """Return those fully indexed streams whose index differs from the sample.

    Letters vanished, came back, or are leaving.
    """
    whole = [(one, sample) for one, sample in read if sample.last <= one.indexed_to]
    known = Letter.objects.filter(stream__in=[one.pk for one, _ in whole])
    counted = known.order_by().values("stream").annotate(count=Count("pk"), first=Min("position"))
    found = {row["stream"]: (row["count"], row["first"]) for row in counted} if whole else {}
    return [
        (one, sample)
        for one, sample in whole
        if found.get(one.pk, (0, "")) != (sample.depth, sample.first)
    ]


def find_gaps(stream: LetterStream, now: datetime, *, seconds: float) -> bool:
    """Record the letters that vanished; return True if there was time to check all.

    Raises :class:`ServerUnavailable` and :class:`ServerRefused`.
    """
    before = stream.vanished_total
    is_whole = _compare(stream, now, time.monotonic() + seconds)
    stream.refresh_from_db()
    if stream.vanished_total > before:
        vanished = stream.vanished_total - before
        log.warning("dead_letters.vanished", stream=str(stream), count=vanished)
    return is_whole


def _compare(stream: LetterStream, now: datetime, deadline: float) -> bool:
    known = Letter.objects.filter(stream=stream).aggregate(count=Count("pk"), upto=Max("position"))
    # An index that is made anew has rows behind where it has come to.
    upto = max(known["upto"] or "", stream.indexed_to)
    about_to = _count_leaving(stream, now)
    sample = samples.sample_stream(stream.server, stream.name)
    trimmed, is_whole = _delete_trimmed(stream, sample, upto, now, deadline)
    if not is_whole or sample.last > stream.indexed_to:
        return is_whole
    missing = known["count"] - trimmed - sample.depth
    if missing < 0:
        return _restart_index(stream)
    return missing <= about_to or _compare_all(stream, upto, now, deadline)


def _count_leaving(stream: LetterStream, now: datetime) -> int:
    """Return how many letters are leaving: Redis and the index may differ by these."""
    leaving = Departure.objects.filter(stream=stream)
    intended = leaving.filter(state__in=["intended", "restoring"]).count()
    return (
        intended
        + leaving.filter(
            intended_at__gt=now - 2 * SETTLED_WITHIN, done_at__gt=now - SETTLED_WITHIN
        ).count()
    )


def _delete_trimmed(
    stream: LetterStream, sample: StreamSample, upto: str, now: datetime, deadline: float
) -> tuple[int, bool]:
    """Delete the rows before the first entry; return how many, and True if that was all."""
    below = Letter.objects.filter(stream=stream, position__lte=upto).order_by("position")
    if sample.depth:
        below = below.filter(position__lt=sample.first)
    done, after = 0, ""
    while True:
        chunk = list(below.filter(position__gt=after).values_list("position", flat=True)[:AT_ONCE])
        if not chunk:
            return done, True
        after = chunk[-1]
        done += _delete_missing(stream, chunk, now)
        if time.monotonic() > deadline:
            return done, False


def _compare_all(stream: LetterStream, upto: str, now: datetime, deadline: float) -> bool:
    """Compare every id with the index, a few thousand at a time."""
    rows = Letter.objects.filter(stream=stream, position__lte=upto).order_by("position")
    after = ""
    while True:
        chunk = list(rows.filter(position__gt=after).values_list("position", flat=True)[:AT_ONCE])
        if not chunk:
            return True
        there = set(_iterate_positions(stream, after, chunk[-1]))
        gone = [position for position in chunk if position not in there]
        if gone:
            _delete_missing(stream, gone, now)
        after = chunk[-1]
        if time.monotonic() > deadline:
            return False


def _iterate_positions(stream: LetterStream, after: str, last: str) -> Iterator[str]:
    """Yield the positions of the existing entries behind `after` up to `last`."""
    begin, end = (ids.to_entry_id(after) if after else ""), ids.to_entry_id(last)
    while True:
        call = ScriptCall([stream.name], [begin, end, AT_ONCE, BUDGET])
        given, more = servers.get_server(stream.server).run("walk", call)
        yield from (ids.to_position(one.decode()) for one in given)
        if not more or not given:
            return
        begin = given[-1].decode()


@transaction.atomic
def _delete_missing(stream: LetterStream, positions: Sequence[str], now: datetime) -> int:
    """Delete the rows of missing entries; return how many."""
    locked = LetterStream.objects.select_for_update().get(pk=stream.pk)
    values: dict[str, Any] = {"stream": stream.pk, "positions": list(positions)}
    deleted = fetch_all(_FORGET, values)
    vanished = sorted(position for position, left_through_us in deleted if not left_through_us)
    if vanished:
        _record_gap(locked, vanished, now)
    return len(deleted)


def _record_gap(stream: LetterStream, vanished: Sequence[str], now: datetime) -> None:
    stream.vanished_total += len(vanished)
    stream.save(update_fields=["vanished_total"])
    first, last, count = vanished[0], vanished[-1], len(vanished)
    latest = (
        Gap.objects.filter(stream=stream, noticed_at__gt=now - MERGE_WITHIN).order_by("-pk").first()
    )
    if latest is not None and not _has_letters_between(stream, latest, first, last):
        latest.first, latest.last = min(latest.first, first), max(latest.last, last)
        latest.count += count
        latest.save(update_fields=["first", "last", "count"])
    else:
        Gap.objects.create(stream=stream, first=first, last=last, count=count, noticed_at=now)
    live.notify_changed(stream_state.TOPIC, str(stream))


def _has_letters_between(stream: LetterStream, gap: Gap, first: str, last: str) -> bool:
    """Return True if letters lie between a gap and the entries found missing now."""
    return Letter.objects.filter(
        stream=stream, position__gt=min(gap.first, first), position__lt=max(gap.last, last)
    ).exists()


@transaction.atomic
def _restart_index(stream: LetterStream) -> bool:
    """Index the stream again from its first entry: entries came back after a failover."""
    LetterStream.objects.filter(pk=stream.pk, indexed_to=stream.indexed_to).update(indexed_to="")
    return False
