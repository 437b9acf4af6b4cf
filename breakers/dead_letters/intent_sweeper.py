"""Sweeper that executes and settles overdue removal intents.

An intent is overdue if the process that declared it died, or if its Redis server was unavailable.
Sweeping an intent that another process still works on is harmless, since execution and settlement
are idempotent.
"""

import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from breakers.dead_letters.letters.batches import batch_by_size
from breakers.dead_letters.letters.entries import OUTLINE
from controlplane.core.audit import services as audit
from controlplane.core.errors import NotFound

from .bulk.counts import recount_removals
from .models import Departure, LetterStream
from .redis_servers import reader
from .redis_servers.servers import ServerRefused, ServerUnavailable
from .removals import audit_rows, execution, restoration, settlement
from .removals.execution import Outcomes, RemovalOutcome

GRACE_PERIOD = timedelta(seconds=30)
"""Minimum age of an intent before the sweeper executes it."""
BUDGET_SECONDS = 5.0
BATCH_SIZE = 50
BATCH_BYTES = 4 * 1024 * 1024
BY_RETENTION = (Departure.Action.AGE, Departure.Action.LENGTH)

log = structlog.get_logger(__name__)


def sweep_intents(now: datetime) -> int:
    """Settle overdue removal intents for a few seconds; return how many were settled."""
    deadline = time.monotonic() + BUDGET_SECONDS
    overdue = Departure.objects.filter(intended_at__lt=now - GRACE_PERIOD, state="intended")
    streams = LetterStream.objects.filter(pk__in=overdue.values("stream")).order_by("pk")
    away: set[str] = set()
    done = restoration.settle_overdue_restores(now - GRACE_PERIOD, now)
    for stream in streams:
        after = 0
        while stream.server not in away and time.monotonic() < deadline:
            batch = _next_batch(stream, after, now)
            if not batch:
                break
            after = batch[-1].pk
            try:
                done += settle_batch(stream, batch, now)
            except (ServerUnavailable, NotFound) as error:
                if execution.is_responding(stream):
                    continue  # This batch may be too large; the next one may succeed.
                log.warning("dead_letters.settle_postponed", server=stream.server, error=str(error))
                away.add(stream.server)
    return done


def settle_batch(stream: LetterStream, departures: Sequence[Departure], now: datetime) -> int:
    """Execute and settle removal intents of one stream; return how many were settled.

    An intent refused for a temporary reason stays open; a permanently refused intent is withdrawn
    if its letter still exists. Raises :class:`ServerUnavailable`.
    """
    outcomes = execution.execute_intents(stream, departures)
    final = {
        one.pk: outcomes[one.pk]
        for one in departures
        if outcomes[one.pk].kind != "refused" or _is_refused_for_good(stream, one, outcomes[one.pk])
    }
    with transaction.atomic():
        settled = settlement.settle_intents(stream, departures, final, now)
        _record_audit(stream, settled, outcomes, now)
    for job_id in {one.job_id for rows in settled.values() for one in rows if one.job_id}:
        recount_removals(job_id)
    return sum(map(len, settled.values()))


def _next_batch(stream: LetterStream, after: int, now: datetime) -> list[Departure]:
    overdue = stream.departures.filter(
        pk__gt=after, state="intended", intended_at__lt=now - GRACE_PERIOD
    )
    sized = overdue.order_by("pk").values_list("pk", "size_bytes")[:BATCH_SIZE]
    pks = next(batch_by_size(sized, max_bytes=BATCH_BYTES, max_items=BATCH_SIZE), [])
    return list(Departure.objects.filter(pk__in=pks).order_by("pk"))


def _record_audit(
    stream: LetterStream, settled: dict[str, list[Departure]], outcomes: Outcomes, now: datetime
) -> None:
    """Write the audit rows of settled intents, except those of bulk jobs: a job has its own row."""
    single = [one for one in settled["done"] if one.job_id is None]
    counts = Counter(one.action for one in single if one.action in BY_RETENTION)
    audit_rows.record_removals([one for one in single if one.action not in BY_RETENTION], now)
    for one in settled["refused"]:
        why = outcomes[one.pk].why
        log.warning("dead_letters.intent_refused", stream=str(stream), action=one.action, why=why)
        if one.job_id is None and one.action not in BY_RETENTION:
            after = {"id": one.entry_id, "action": one.action, "why": why}
            audit.record(
                actor=audit_rows.SETTLE,
                action=audit_rows.WITHDRAWN,
                target=stream.audit_target,
                reason="The server refused it. The letter is unchanged.",
                after=after,
                now=now,
            )
    if counts:
        audit_rows.record_retention(stream, audit_rows.SETTLE, counts, now)


def _is_refused_for_good(
    stream: LetterStream, departure: Departure, refused: RemovalOutcome
) -> bool:
    """Return True if the removal was refused permanently and the letter still exists."""
    if refused.is_temporary:
        return False
    try:
        entry_id = departure.entry_id
        return reader.read_entry(stream.server, stream.name, entry_id, limits=OUTLINE) is not None
    except ServerRefused:
        return False
