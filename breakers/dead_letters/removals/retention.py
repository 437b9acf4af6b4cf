"""Retention of letters: archives old and excess letters, and purges the archive.

The age of a letter is taken from its entry id, or from its index row if the id encodes no time.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Q

from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.entries import LetterEntry, ReadLimits
from breakers.dead_letters.models import Departure, Letter, LetterStream, Replay
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import reader, samples
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from breakers.dead_letters.sources import configured_sources
from controlplane.core.errors import Conflict
from controlplane.core.jobs.models import Job

from . import actions, archive, audit_rows, execution, intents, settlement
from .archive import RETENTION

BUDGET_SECONDS = 10.0
MIN_SECONDS = 0.5
PURGE_SECONDS = 2.0
AT_ONCE = 200
MAX_UNEXPECTED = 1000
FIRST_OF_CLOCK = "1000000000000-0"
"""Smallest entry id that encodes a time; see `ids.added_at`."""
REASONS = {
    Departure.Action.AGE: "It was older than dead letters are kept.",
    Departure.Action.LENGTH: "There were more dead letters than are kept.",
}

log = structlog.get_logger(__name__)


def archive_overdue(now: datetime) -> int:
    """Archive old and excess letters, and purge the archive, for some seconds; return how many.

    Each stream gets a share of the remaining time. Streams with a live bulk job are skipped, and
    streams that can't be read are left to a later run.
    """
    done, purge_until = 0, time.monotonic() + PURGE_SECONDS
    while time.monotonic() < purge_until and (purged := archive.purge_batch(now)):
        done += purged
    deadline = time.monotonic() + BUDGET_SECONDS
    away: set[str] = set()
    waiting = _streams_to_check(now)
    while waiting and time.monotonic() < deadline:
        stream = waiting.pop(0)
        if stream.server in away:
            continue
        share = (deadline - time.monotonic()) / (len(waiting) + 1)
        try:
            archived = archive_stream(stream, now, seconds=max(MIN_SECONDS, share))
        except (ServerUnavailable, ServerRefused) as error:
            log.warning("dead_letters.retention_postponed", stream=str(stream), error=str(error))
            if isinstance(error, ServerUnavailable):
                away.add(stream.server)
            continue
        done += archived
        if archived:  # The stream may have more letters to archive; other streams come first.
            waiting.append(stream)
    return done


def archive_stream(stream: LetterStream, now: datetime, *, seconds: float) -> int:
    """Archive letters older than the configured age, then the letters above the configured number.

    Stop after about `seconds`; return how many letters were archived. Raises
    :class:`ServerUnavailable` and :class:`ServerRefused`, after writing the audit row of the
    letters archived so far.
    """
    deadline = time.monotonic() + seconds
    # A letter removed before it was indexed would not count as arrived.
    indexer.catch_up(stream, now, seconds=seconds / 4)
    counts: Counter[str] = Counter()
    sources = (
        (Departure.Action.AGE, _old_batches(stream, now)),
        (Departure.Action.LENGTH, _excess_batches(stream)),
    )
    try:
        for action, batches in sources:
            for batch in batches:
                counts[action] += _archive_batch(stream, batch, action, now)
                if time.monotonic() > deadline:
                    break
    finally:
        if counts.total():
            with transaction.atomic():
                audit_rows.record_retention(stream, RETENTION, counts, now)
    return counts.total()


def _streams_to_check(now: datetime) -> list[LetterStream]:
    """Return streams that may have old or excess letters, in random order.

    The random order gives every stream a chance, as a run may not reach all.
    """
    sources = configured_sources()
    before = now - timedelta(days=sources.kept_days)
    may_be = Q(depth__gt=sources.most_kept) | Q(oldest_at__lt=before)
    may_be |= Q(sampled_at=None) | Q(first__lt=ids.to_position(FIRST_OF_CLOCK), depth__gt=0)
    busy = Replay.objects.filter(job__state__in=Job.LIVE).values("stream")
    rows = LetterStream.objects.filter(
        source=LetterStream.Source.STREAM, server__in=sources.servers, gone_at=None
    )
    served = rows.filter(may_be).exclude(pk__in=busy).order_by("?")
    return [one for one in served if sources.origin_of(one.name) is not None]


def _old_batches(stream: LetterStream, now: datetime) -> Iterator[Sequence[LetterEntry]]:
    before = now - timedelta(days=configured_sources().kept_days)
    # Entries whose ids are no times are found by the index.
    letters = Letter.objects.filter(stream=stream, failed_at__lt=before)
    odd = letters.filter(position__lt=ids.to_position(FIRST_OF_CLOCK)).order_by("position")
    for position in list(odd.values_list("position", flat=True)[:MAX_UNEXPECTED]):
        entry = reader.read_entry(stream.server, stream.name, ids.to_entry_id(position))
        if entry is not None:
            yield [entry]
    last = f"{int(before.timestamp() * 1000)}-0"
    yield from _iterate_batches(stream, first=FIRST_OF_CLOCK, last=last)


def _excess_batches(stream: LetterStream) -> Iterator[Sequence[LetterEntry]]:
    """Yield batches of a stream's oldest entries until at most `DLQ_MOST_KEPT` would remain."""
    left = samples.sample_stream(stream.server, stream.name).depth - configured_sources().most_kept
    for entries in _iterate_batches(stream, first="-", last="+"):
        if left <= 0:
            return
        yield entries[:left]
        left -= len(entries)


def _iterate_batches(
    stream: LetterStream, *, first: str, last: str
) -> Iterator[Sequence[LetterEntry]]:
    limits = ReadLimits(entries=AT_ONCE)
    pages = reader.iterate_pages(stream.server, stream.name, first=first, last=last, limits=limits)
    return (page.entries for page in pages)


def _archive_batch(
    stream: LetterStream, entries: Sequence[LetterEntry], action: str, now: datetime
) -> int:
    """Archive and remove entries, except too large ones or with an open intent; return how many."""
    archivable = []
    for entry in entries:
        with suppress(Conflict):
            actions.require_removable(entry, None, action)
            archivable.append(entry)
    if not archivable:
        return 0
    declared = intents.declare_intents(
        stream=stream,
        entries=archivable,
        action=action,
        actor=RETENTION,
        reason=REASONS[Departure.Action(action)],
        now=now,
    )
    outcomes = execution.execute_intents(stream, declared)
    with transaction.atomic():
        return len(settlement.settle_intents(stream, declared, outcomes, now)["done"])
