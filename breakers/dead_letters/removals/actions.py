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
from breakers.dead_letters.letters.entries import LetterEntry, Pairs
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import reader
from breakers.dead_letters.redis_servers.servers import ServerRefused, ServerUnavailable
from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict, NotFound

from . import audit_rows, missing_letters, settlement
from .execution import RemovalOutcome

RETRY, DISCARD = Departure.Action.RETRY, Departure.Action.DISCARD


@dataclass(frozen=True)
class PreparedRemoval:
    """What was done in Redis and is yet to be written down.

    `repeated`: it had been done before, so there may be nothing to write. Without a departure it is
    a dry run, or was settled long ago.
    """

    stream: LetterStream
    entry_id: str
    action: str
    actor: Actor
    departure: Departure | None = None
    outcome: RemovalOutcome | None = None
    repeated: bool = False
    new_id: str = ""


def prepare_retry(
    *,
    stream: LetterStream,
    entry_id: str,
    reason: str,
    edited_fields: Mapping[str, Any] | None = None,
    actor: Actor,
    now: datetime,
    dry_run: bool = False,
) -> PreparedRemoval:
    """Put a letter's message, or what it was edited to, back into the origin.

    Raises :class:`Forbidden`, :class:`InvalidInput`, :class:`NotFound`, :class:`Conflict` if the
    letter is gone or another is at it, and :class:`servers.ServerUnavailable`, before which the
    retry may have been noted: it is carried out then, and asking again gives the same retry.
    """
    given = _RemovalRequest(stream, entry_id, RETRY, reason, actor, now, dry_run)
    return _prepare(given, edited_fields or {})


def prepare_discard(
    *,
    stream: LetterStream,
    entry_id: str,
    reason: str,
    actor: Actor,
    now: datetime,
    dry_run: bool = False,
) -> PreparedRemoval:
    """Take a letter away; the archive has it for thirty days. Raises as :func:`prepare_retry`."""
    return _prepare(_RemovalRequest(stream, entry_id, DISCARD, reason, actor, now, dry_run), {})


def record_retry(prepared: PreparedRemoval, *, now: datetime) -> dict[str, Any]:
    """Write a retry down in the caller's transaction, audit row last; what to answer."""
    repeated = _record(prepared, now)
    return {
        "retried": True,
        "new_id": prepared.new_id or None,
        "repeated": repeated,
        "delivery": settlement.delivery_guarantee(prepared.stream),
    }


def record_discard(prepared: PreparedRemoval, *, now: datetime) -> dict[str, Any]:
    """Write a discard down in the caller's transaction, audit row last; what to answer.

    `departure` is what :func:`restoring.restore` takes.
    """
    repeated = _record(prepared, now)
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
    prepared = prepare_retry(
        stream=stream,
        entry_id=entry_id,
        reason=reason,
        edited_fields=edited_fields,
        actor=actor,
        now=now,
    )
    with transaction.atomic():
        return record_retry(prepared, now=now)


def discard(
    *, stream: LetterStream, entry_id: str, reason: str, actor: Actor, now: datetime
) -> dict[str, Any]:
    """Both parts of a discard, for callers without a transaction."""
    prepared = prepare_discard(
        stream=stream, entry_id=entry_id, reason=reason, actor=actor, now=now
    )
    with transaction.atomic():
        return record_discard(prepared, now=now)


@dataclass(frozen=True)
class _RemovalRequest:
    stream: LetterStream
    entry_id: str
    action: str
    reason: str
    actor: Actor
    now: datetime
    dry_run: bool


def _prepare(asked: _RemovalRequest, edited_fields: Mapping[str, Any]) -> PreparedRemoval:
    asked.actor.require(settlement.SCOPE)
    reason = settlement.require_reason(asked.reason)
    if asked.stream.source == LetterStream.Source.OUTBOX:
        raise NotFound("A message of the outbox is no entry of a stream: retry it there.")
    ids.to_position(asked.entry_id)
    entry = reader.read_entry(asked.stream.server, asked.stream.name, asked.entry_id)
    if entry is None:
        return _prepare_missing(asked, edited_fields)
    edited = edits.apply_edits(entry, edited_fields) if edited_fields else None
    require_removable(entry, edited, asked.action)
    _require_no_other_intent(asked, entry, edited)
    if asked.dry_run:
        return PreparedRemoval(asked.stream, entry.id, asked.action, asked.actor)
    # What leaves before it was ever indexed would not count as having arrived.
    indexer.catch_up(asked.stream, asked.now, seconds=0.5)
    declared = settlement.declare_intents(
        stream=asked.stream,
        entries=[entry],
        action=asked.action,
        actor=asked.actor,
        reason=reason,
        edits=None if edited is None else {entry.id: edited},
        now=asked.now,
    )
    if not declared:
        raise _other_intent_error(asked, entry.position)
    return _execute(asked, declared[0])


def require_removable(entry: LetterEntry, edited: Pairs | None, action: str) -> None:
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


def _require_no_other_intent(
    asked: _RemovalRequest, entry: LetterEntry, edited: Pairs | None
) -> None:
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
    if not is_mine or departure.action != asked.action or not _has_same_edits(departure, edited):
        raise missing_letters.departed_error(departure)


def _has_same_edits(departure: Departure, edited: Pairs | None) -> bool:
    """Whether the message that goes, or went, is the one that is asked for now."""
    kept = bytes(departure.edited) if departure.edited is not None else None
    return kept == (packing.pack(edited) if edited is not None else None)


def _other_intent_error(asked: _RemovalRequest, position: str) -> Conflict:
    departure = missing_letters.find_last_departure(asked.stream, position)
    if departure is not None:
        return missing_letters.departed_error(departure)
    return Conflict(f"Another is at the dead letter {asked.entry_id} just now. Look again.")


def _prepare_missing(asked: _RemovalRequest, edited_fields: Mapping[str, Any]) -> PreparedRemoval:
    """A letter that is not there: if it left in just this way, that is the answer once more."""
    position = ids.to_position(asked.entry_id)
    departure = missing_letters.find_last_departure(asked.stream, position)
    if departure is None or departure.action != asked.action:
        raise missing_letters.missing_letter_error(asked.stream, asked.entry_id)
    departure.refresh_from_db(fields=["fields", "edited"])
    edited = None
    if edited_fields:
        entry = LetterEntry(asked.entry_id, packing.unpack(departure.fields))
        edited = edits.apply_edits(entry, edited_fields)
    if not _has_same_edits(departure, edited):
        raise missing_letters.departed_error(departure)
    if departure.state == Departure.State.INTENDED and departure.job_id is None:
        # Carried out, it seems, by somebody who did not live to write it down.
        return _execute(asked, departure)
    return _prepare_repeat(asked, departure)


def _prepare_repeat(asked: _RemovalRequest, departure: Departure) -> PreparedRemoval:
    """The answer to what was done before."""
    if departure.state != Departure.State.DONE:
        raise missing_letters.departed_error(departure)
    return PreparedRemoval(
        asked.stream,
        asked.entry_id,
        asked.action,
        asked.actor,
        departure=departure,
        repeated=True,
        new_id=departure.new_id,
    )


def _execute(asked: _RemovalRequest, departure: Departure) -> PreparedRemoval:
    try:
        outcome = settlement.execute_intents(asked.stream, [departure])[departure.pk]
    except ServerUnavailable as error:
        raise ServerUnavailable(
            f"The Redis server {asked.stream.server} does not answer. What you asked for is noted,"
            " and is carried out once it answers; asking again does no harm."
        ) from error
    if outcome.kind in ("gone", "refused"):
        with transaction.atomic():
            settlement.settle_and_count(
                asked.stream, [departure], {departure.pk: outcome}, asked.now
            )
        if outcome.kind == "refused":
            raise ServerRefused(outcome.why, server=asked.stream.server)
        raise missing_letters.missing_letter_error(asked.stream, asked.entry_id)
    if outcome.kind == "again" and (
        other := missing_letters.find_other_removal(departure, outcome.new_id)
    ):
        # It left after we had read it, and before we declared that it should.
        with transaction.atomic():
            settlement.settle_and_count(
                asked.stream, [departure], {departure.pk: outcome}, asked.now
            )
        edited = None if departure.edited is None else packing.unpack(departure.edited)
        if not _has_same_edits(other, edited):
            raise missing_letters.departed_error(other)
        return _prepare_repeat(asked, other)
    return PreparedRemoval(
        asked.stream,
        asked.entry_id,
        asked.action,
        asked.actor,
        departure=departure,
        outcome=outcome,
        repeated=outcome.kind == "again",
        new_id=outcome.new_id,
    )


def _record(prepared: PreparedRemoval, now: datetime) -> bool:
    """Settle and tell; whether it had been done before."""
    departure, outcome = prepared.departure, prepared.outcome
    if departure is None or outcome is None:
        return prepared.repeated
    found = settlement.settle_intents(prepared.stream, [departure], {departure.pk: outcome}, now)
    audit_rows.record_removals(found["done"], now, actor=prepared.actor)
    return prepared.repeated or not found["done"]
