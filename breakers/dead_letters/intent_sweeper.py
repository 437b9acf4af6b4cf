"""Intents that nobody carried to their end, carried out and written down by the clockwork.

Whoever declared them may have died, or found a server away. It does no harm if they are at it
still: what was carried out is not done again, and what is settled is not settled twice.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from controlplane.core.audit import services as audit
from controlplane.core.errors import NotFound

from . import targets
from .bulk import tally
from .letters import ids
from .models import Departure, LetterStream
from .redis_servers import reader
from .redis_servers.servers import ServerAway, ServerRefused
from .removals import audit_rows, restoration, settlement
from .removals.execution import LOOK, Outcome, answers

LEFT_ALONE = timedelta(seconds=30)
"""For so long an intent is its maker's."""
BUDGET_SECONDS = 5.0
AT_ONCE = 50
BYTES_AT_ONCE = 4 * 1024 * 1024
BY_RETENTION = (Departure.Action.AGE, Departure.Action.LENGTH)

log = structlog.get_logger(__name__)


def turn(now: datetime) -> int:
    """Settle what has been open for half a minute; returns how many intents that was.

    A server that is away keeps nobody else's waiting, nor does a stream with very many.
    """
    deadline = time.monotonic() + BUDGET_SECONDS
    overdue = Departure.objects.filter(intended_at__lt=now - LEFT_ALONE, state="intended")
    streams = LetterStream.objects.filter(pk__in=overdue.values("stream")).order_by("pk")
    away: set[str] = set()
    done = restoration.settle_overdue(now - LEFT_ALONE, now)
    for stream in streams:
        after = 0
        while stream.server not in away and time.monotonic() < deadline:
            batch = _batch(stream, after, now)
            if not batch:
                break
            after = batch[-1].pk
            try:
                done += settle(stream, batch, now)
            except (ServerAway, NotFound) as error:
                if answers(stream):
                    continue  # It may be what these letters weigh; others are not kept waiting.
                # Attention tells of a server that is away; of one that is not configured any more,
                # the intents that stay open do.
                log.warning("dead_letters.settle_postponed", server=stream.server, error=str(error))
                away.add(stream.server)
    return done


def settle(stream: LetterStream, departures: Sequence[Departure], now: datetime) -> int:
    """Carry out intents of a stream and write down what came of it; returns how many were settled.

    One that is refused for the time being stays open; one that was refused for good is taken back,
    if its letter is there still. Raises :class:`ServerAway`.
    """
    outcomes = settlement.carry_out(stream, departures)
    final = {
        one.pk: outcomes[one.pk]
        for one in departures
        if outcomes[one.pk].kind != "refused" or _is_for_good(stream, one, outcomes[one.pk])
    }
    with transaction.atomic():
        found = settlement.settled(stream, departures, final, now)
        _tell(stream, found, outcomes, now)
    for job_id in {one.job_id for rows in found.values() for one in rows if one.job_id}:
        tally.recount(job_id)
    return sum(map(len, found.values()))


def _batch(stream: LetterStream, after: int, now: datetime) -> list[Departure]:
    """Some of the overdue, by key, with payloads of a few megabytes in all (one at least)."""
    overdue = stream.departures.filter(
        pk__gt=after, state="intended", intended_at__lt=now - LEFT_ALONE
    )
    wanted: list[int] = []
    size = 0
    for pk, bytes_ in overdue.order_by("pk").values_list("pk", "size_bytes")[:AT_ONCE]:
        if wanted and size + bytes_ > BYTES_AT_ONCE:
            break
        wanted.append(pk)
        size += bytes_
    return list(Departure.objects.filter(pk__in=wanted).order_by("pk"))


def _tell(
    stream: LetterStream,
    found: dict[str, list[Departure]],
    outcomes: dict[int, Outcome],
    now: datetime,
) -> None:
    """Audit rows: of a job's letters the job tells itself."""
    single = [one for one in found["done"] if one.job_id is None]
    counts: dict[str, int] = defaultdict(int)
    for one in single:
        if one.action in BY_RETENTION:
            counts[one.action] += 1
    audit_rows.of_singles([one for one in single if one.action not in BY_RETENTION], now)
    for one in found["refused"]:
        why = outcomes[one.pk].why
        log.warning("dead_letters.intent_refused", stream=str(stream), action=one.action, why=why)
        if one.job_id is None and one.action not in BY_RETENTION:
            after = {"id": ids.entry_id(one.position), "action": one.action, "why": why}
            audit.record(
                actor=audit_rows.SETTLE,
                action=audit_rows.WITHDRAWN,
                target=targets.of(stream),
                reason="The server refused it; the letter is where it was.",
                after=after,
                now=now,
            )
    if counts:
        audit_rows.of_many(stream, audit_rows.SETTLE, counts, now)


def _is_for_good(stream: LetterStream, departure: Departure, refused: Outcome) -> bool:
    """Whether it will be refused again, and nothing was done: the letter is there to be seen."""
    if refused.is_passing:
        return False
    entry_id = ids.entry_id(departure.position)
    try:
        return reader.one(stream.server, stream.name, entry_id, limits=LOOK) is not None
    except ServerRefused:
        return False
