"""One dead letter retried or discarded by somebody, in two parts.

What goes through Redis happens first, in transactions of its own, and is safe to repeat; writing
down what came of it, with the audit row, is the caller's transaction. If that never comes, the
clockwork settles it (see `breakers.dead_letters.intent_sweeper`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from breakers.dead_letters.letters import edits, ids, packing
from breakers.dead_letters.letters.entries import Entry, Pairs
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import reader
from breakers.dead_letters.redis_servers.servers import ServerAway, ServerRefused
from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict, NotFound

from . import audit_rows, missing_letters, settlement
from .execution import Outcome

RETRY, DISCARD = Departure.Action.RETRY, Departure.Action.DISCARD


@dataclass(frozen=True)
class Prepared:
    """What was done in Redis and is yet to be written down. `repeated`: it had been done before, so
    there may be nothing to write. Without a departure it is a dry run, or was settled long ago."""

    stream: LetterStream
    entry_id: str
    action: str
    actor: Actor
    departure: Departure | None = None
    outcome: Outcome | None = None
    repeated: bool = False
    new_id: str = ""


def retry_first(
    *,
    stream: LetterStream,
    entry_id: str,
    reason: str,
    edited_fields: Mapping[str, Any] | None = None,
    actor: Actor,
    now: datetime,
    dry_run: bool = False,
) -> Prepared:
    """Put a letter's message, or what it was edited to, back into the origin.

    Raises :class:`Forbidden`, :class:`InvalidInput`, :class:`NotFound`, :class:`Conflict` if the
    letter is gone or another is at it, and :class:`servers.ServerAway`, before which the retry may
    have been noted: it is carried out then, and asking again gives the same retry.
    """
    given = _Asked(stream, entry_id, RETRY, reason, actor, now, dry_run)
    return _first(given, edited_fields or {})


def discard_first(
    *,
    stream: LetterStream,
    entry_id: str,
    reason: str,
    actor: Actor,
    now: datetime,
    dry_run: bool = False,
) -> Prepared:
    """Take a letter away; the archive has it for thirty days. Raises as :func:`retry_first`."""
    return _first(_Asked(stream, entry_id, DISCARD, reason, actor, now, dry_run), {})


def retried(prepared: Prepared, *, now: datetime) -> dict[str, Any]:
    """Write a retry down in the caller's transaction, audit row last; what to answer."""
    repeated = _settled(prepared, now)
    return {
        "retried": True,
        "new_id": prepared.new_id or None,
        "repeated": repeated,
        "delivery": settlement.delivery_of(prepared.stream),
    }


def discarded(prepared: Prepared, *, now: datetime) -> dict[str, Any]:
    """Write a discard down in the caller's transaction, audit row last; what to answer.
    `departure` is what :func:`restoring.restore` takes."""
    repeated = _settled(prepared, now)
    departure = prepared.departure
    return {
        "discarded": True,
        "departure": departure.pk if departure is not None else None,
        "repeated": repeated,
    }


def retry(
    *,
    stream: LetterStream,
    entry_id: str,
    reason: str,
    edited_fields: Mapping[str, Any] | None = None,
    actor: Actor,
    now: datetime,
) -> dict[str, Any]:
    """Both parts of a retry, for callers without a transaction."""
    prepared = retry_first(
        stream=stream,
        entry_id=entry_id,
        reason=reason,
        edited_fields=edited_fields,
        actor=actor,
        now=now,
    )
    with transaction.atomic():
        return retried(prepared, now=now)


def discard(
    *, stream: LetterStream, entry_id: str, reason: str, actor: Actor, now: datetime
) -> dict[str, Any]:
    """Both parts of a discard, for callers without a transaction."""
    prepared = discard_first(stream=stream, entry_id=entry_id, reason=reason, actor=actor, now=now)
    with transaction.atomic():
        return discarded(prepared, now=now)


@dataclass(frozen=True)
class _Asked:
    stream: LetterStream
    entry_id: str
    action: str
    reason: str
    actor: Actor
    now: datetime
    dry_run: bool


def _first(asked: _Asked, edited_fields: Mapping[str, Any]) -> Prepared:
    asked.actor.require(settlement.SCOPE)
    reason = settlement.checked_reason(asked.reason)
    if asked.stream.source == LetterStream.Source.OUTBOX:
        raise NotFound("A message of the outbox is no entry of a stream: retry it there.")
    ids.position(asked.entry_id)
    entry = reader.one(asked.stream.server, asked.stream.name, asked.entry_id)
    if entry is None:
        return _left_already(asked, edited_fields)
    edited = edits.apply(entry, edited_fields) if edited_fields else None
    check_leaves(entry, edited, asked.action)
    _check_nobody_else(asked, entry, edited)
    if asked.dry_run:
        return Prepared(asked.stream, entry.id, asked.action, asked.actor)
    # What leaves before it was ever indexed would not count as having arrived.
    indexer.catch_up(asked.stream, asked.now, seconds=0.5)
    declared = settlement.declare(
        stream=asked.stream,
        entries=[entry],
        action=asked.action,
        actor=asked.actor,
        reason=reason,
        edits=None if edited is None else {entry.id: edited},
        now=asked.now,
    )
    if not declared:
        raise _at_it(asked, entry.position)
    return _carried(asked, declared[0])


def check_leaves(entry: Entry, edited: Pairs | None, action: str) -> None:
    """Raise :class:`Conflict` if it is more than can be archived, or than a script can add."""
    if entry.size_bytes > settlement.MAX_BYTES or not entry.is_whole:
        raise Conflict(
            f"This letter has {entry.size_bytes:,} bytes; up to {settlement.MAX_BYTES:,} can be"
            " archived, and what is not archived is not taken away.",
            why="too_large",
        )
    fields = entry.original if edited is None else edited
    if action == RETRY and len(fields) > settlement.MAX_FIELDS:
        raise Conflict(
            f"This message has {len(fields):,} fields; up to {settlement.MAX_FIELDS:,} can be put"
            " back at once.",
            why="too_many_fields",
        )


def _check_nobody_else(asked: _Asked, entry: Entry, edited: Pairs | None) -> None:
    """Raise :class:`Conflict` if an intent is open that is not this one, asked for once more."""
    departure = (
        Departure.objects.filter(
            stream=asked.stream, position=entry.position, state=Departure.State.INTENDED
        )
        .defer("fields")
        .first()
    )
    if departure is None:
        return
    is_mine = departure.job_id is None and departure.by == asked.actor.label
    if not is_mine or departure.action != asked.action or not _is_edited_so(departure, edited):
        raise missing_letters.departed(departure)


def _is_edited_so(departure: Departure, edited: Pairs | None) -> bool:
    """Whether the message that goes, or went, is the one that is asked for now."""
    kept = bytes(departure.edited) if departure.edited is not None else None
    return kept == (packing.pack(edited) if edited is not None else None)


def _at_it(asked: _Asked, position: str) -> Conflict:
    departure = missing_letters.last_departure(asked.stream, position)
    if departure is not None:
        return missing_letters.departed(departure)
    return Conflict(f"Another is at the dead letter {asked.entry_id} just now. Look again.")


def _left_already(asked: _Asked, edited_fields: Mapping[str, Any]) -> Prepared:
    """A letter that is not there: if it left in just this way, that is the answer once more."""
    position = ids.position(asked.entry_id)
    departure = missing_letters.last_departure(asked.stream, position)
    if departure is None or departure.action != asked.action:
        raise missing_letters.error(asked.stream, asked.entry_id)
    departure.refresh_from_db(fields=["fields", "edited"])
    edited = None
    if edited_fields:
        entry = Entry(asked.entry_id, packing.unpack(departure.fields))
        edited = edits.apply(entry, edited_fields)
    if not _is_edited_so(departure, edited):
        raise missing_letters.departed(departure)
    if departure.state == Departure.State.INTENDED and departure.job_id is None:
        # Carried out, it seems, by somebody who did not live to write it down.
        return _carried(asked, departure)
    return _once_more(asked, departure)


def _once_more(asked: _Asked, departure: Departure) -> Prepared:
    """The answer to what was done before."""
    if departure.state != Departure.State.DONE:
        raise missing_letters.departed(departure)
    return Prepared(
        asked.stream,
        asked.entry_id,
        asked.action,
        asked.actor,
        departure=departure,
        repeated=True,
        new_id=departure.new_id,
    )


def _carried(asked: _Asked, departure: Departure) -> Prepared:
    try:
        outcome = settlement.carry_out(asked.stream, [departure])[departure.pk]
    except ServerAway as error:
        raise ServerAway(
            f"The Redis server {asked.stream.server} does not answer. What you asked for is noted,"
            " and is carried out once it answers; asking again does no harm."
        ) from error
    if outcome.kind in ("gone", "refused"):
        with transaction.atomic():
            settlement.settle(asked.stream, [departure], {departure.pk: outcome}, asked.now)
        if outcome.kind == "refused":
            raise ServerRefused(outcome.why, server=asked.stream.server)
        raise missing_letters.error(asked.stream, asked.entry_id)
    if outcome.kind == "again" and (other := missing_letters.who_did(departure, outcome.new_id)):
        # It left after we had read it, and before we declared that it should.
        with transaction.atomic():
            settlement.settle(asked.stream, [departure], {departure.pk: outcome}, asked.now)
        edited = None if departure.edited is None else packing.unpack(departure.edited)
        if not _is_edited_so(other, edited):
            raise missing_letters.departed(other)
        return _once_more(asked, other)
    return Prepared(
        asked.stream,
        asked.entry_id,
        asked.action,
        asked.actor,
        departure=departure,
        outcome=outcome,
        repeated=outcome.kind == "again",
        new_id=outcome.new_id,
    )


def _settled(prepared: Prepared, now: datetime) -> bool:
    """Settle and tell; whether it had been done before."""
    departure, outcome = prepared.departure, prepared.outcome
    if departure is None or outcome is None:
        return prepared.repeated
    found = settlement.settled(prepared.stream, [departure], {departure.pk: outcome}, now)
    audit_rows.of_singles(found["done"], now, actor=prepared.actor)
    return prepared.repeated or not found["done"]
