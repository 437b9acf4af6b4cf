"""Retrying and discarding a single letter, by the protocol of :mod:`.two_phase`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from breakers.dead_letters.letters import edits, ids, packing
from breakers.dead_letters.letters.entries import LetterEntry, Pairs
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import reader
from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict, NotFound

from . import audit_rows, missing_letters, settlement
from .execution import RemovalOutcome
from .two_phase import complete, execute_intent

RETRY, DISCARD = Departure.Action.RETRY, Departure.Action.DISCARD


@dataclass(frozen=True, kw_only=True)
class RemovalRequest:
    """A letter to retry or discard; `edited_fields` replace fields of a retried message."""

    action: str
    stream: LetterStream
    entry_id: str
    reason: str
    edited_fields: Mapping[str, Any] = field(default_factory=dict)
    actor: Actor
    now: datetime
    dry_run: bool = False


@dataclass(frozen=True)
class PreparedRemoval:
    """A removal that was executed in Redis and is yet to be recorded.

    If it was `repeated`, there may be nothing to record. Without an outcome it was a dry run, or
    was settled before.
    """

    request: RemovalRequest
    departure: Departure | None = None
    outcome: RemovalOutcome | None = None
    repeated: bool = False
    new_id: str = ""

    def record(self, now: datetime) -> dict[str, Any]:
        """Settle the intent and audit it; return the answer.

        The `departure` of a discard can be restored.
        """
        repeated = self._settle(now)
        if self.request.action == RETRY:
            return {
                "retried": True,
                "new_id": self.new_id or None,
                "repeated": repeated,
                "delivery": settlement.delivery_guarantee(self.request.stream),
            }
        return {
            "discarded": True,
            "departure": self.departure.pk if self.departure is not None else None,
            "repeated": repeated,
        }

    def _settle(self, now: datetime) -> bool:
        """Settle and audit; return True if it was done before."""
        if self.departure is None or self.outcome is None:
            return self.repeated
        outcomes = {self.departure.pk: self.outcome}
        found = settlement.settle_intents(self.request.stream, [self.departure], outcomes, now)
        audit_rows.record_removals(found["done"], now, actor=self.request.actor)
        return self.repeated or not found["done"]


def remove(
    action: str,
    *,
    stream: LetterStream,
    entry_id: str,
    reason: str,
    edited_fields: Mapping[str, Any] | None = None,
    actor: Actor,
    now: datetime,
) -> dict[str, Any]:
    """Retry or discard a letter, for callers without a transaction; return the answer."""
    request = RemovalRequest(
        action=action,
        stream=stream,
        entry_id=entry_id,
        reason=reason,
        edited_fields=edited_fields or {},
        actor=actor,
        now=now,
    )
    return complete(prepare_removal(request), now)


retry = partial(remove, RETRY)
discard = partial(remove, DISCARD)


def prepare_removal(request: RemovalRequest) -> PreparedRemoval:
    """Move a letter's message, or its edited version, to the origin, or archive the letter.

    Raises :class:`Forbidden`, :class:`InvalidInput`, :class:`NotFound`, :class:`Conflict` if the
    letter is gone or has another's intent, :class:`ServerRefused`, and :class:`ServerUnavailable`,
    before which the intent may have been noted: it is executed later, and a repeat is the same one.
    """
    request.actor.require(settlement.SCOPE)
    reason = settlement.require_reason(request.reason)
    if request.stream.source == LetterStream.Source.OUTBOX:
        raise NotFound("A message of the outbox is no entry of a stream: retry it there.")
    ids.to_position(request.entry_id)
    entry = reader.read_entry(request.stream.server, request.stream.name, request.entry_id)
    if entry is None:
        return _prepare_missing(request)
    edited = edits.apply_edits(entry, request.edited_fields) if request.edited_fields else None
    require_removable(entry, edited, request.action)
    _require_no_other_intent(request, entry, edited)
    if request.dry_run:
        return PreparedRemoval(request)
    # What leaves before it was ever indexed would not count as having arrived.
    indexer.catch_up(request.stream, request.now, seconds=0.5)
    declared = settlement.declare_intents(
        stream=request.stream,
        entries=[entry],
        action=request.action,
        actor=request.actor,
        reason=reason,
        edits=None if edited is None else {entry.id: edited},
        now=request.now,
    )
    if not declared:
        raise _other_intent_error(request, entry.position)
    return _execute(request, declared[0])


def require_removable(entry: LetterEntry, edited: Pairs | None, action: str) -> None:
    """Raise :class:`Conflict` if the letter is too large to be archived, or to be added."""
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
    request: RemovalRequest, entry: LetterEntry, edited: Pairs | None
) -> None:
    """Raise :class:`Conflict` if there is an open intent that is not a repeat of this one."""
    departure = (
        Departure.objects.filter(
            stream=request.stream, position=entry.position, state=Departure.State.INTENDED
        )
        .defer("fields")
        .first()
    )
    if departure is None:
        return
    is_mine = departure.job_id is None and departure.by == request.actor.label
    if not is_mine or departure.action != request.action or not _has_same_edits(departure, edited):
        raise missing_letters.departed_error(departure)


def _has_same_edits(departure: Departure, edited: Pairs | None) -> bool:
    """Return True if the removal stored the same edited message as `edited`, or none for None."""
    kept = bytes(departure.edited) if departure.edited is not None else None
    return kept == (packing.pack(edited) if edited is not None else None)


def _other_intent_error(request: RemovalRequest, position: str) -> Conflict:
    departure = missing_letters.find_last_departure(request.stream, position)
    if departure is not None:
        return missing_letters.departed_error(departure)
    return Conflict(f"Another is at the dead letter {request.entry_id} just now. Look again.")


def _prepare_missing(request: RemovalRequest) -> PreparedRemoval:
    """Prepare a letter that is not in the stream: a repeat if it was removed in just this way."""
    position = ids.to_position(request.entry_id)
    departure = missing_letters.find_last_departure(request.stream, position)
    if departure is None or departure.action != request.action:
        raise missing_letters.missing_letter_error(request.stream, request.entry_id)
    departure.refresh_from_db(fields=["fields", "edited"])
    edited = None
    if request.edited_fields:
        entry = LetterEntry(request.entry_id, packing.unpack(departure.fields))
        edited = edits.apply_edits(entry, request.edited_fields)
    if not _has_same_edits(departure, edited):
        raise missing_letters.departed_error(departure)
    if departure.state == Departure.State.INTENDED and departure.job_id is None:
        # It was probably executed by somebody who died before recording it.
        return _execute(request, departure)
    return _prepare_repeat(request, departure)


def _prepare_repeat(request: RemovalRequest, departure: Departure) -> PreparedRemoval:
    """Return the removal that was done before."""
    if departure.state != Departure.State.DONE:
        raise missing_letters.departed_error(departure)
    return PreparedRemoval(request, departure, repeated=True, new_id=departure.new_id)


def _execute(request: RemovalRequest, departure: Departure) -> PreparedRemoval:
    def execute() -> RemovalOutcome:
        return settlement.execute_intents(request.stream, [departure])[departure.pk]

    def settle(outcome: RemovalOutcome) -> None:
        with transaction.atomic():
            outcomes = {departure.pk: outcome}
            settlement.settle_intents(request.stream, [departure], outcomes, request.now)

    outcome = execute_intent(request.stream.server, execute, settle, noted="What you asked for")
    if outcome.kind == "gone":
        settle(outcome)
        raise missing_letters.missing_letter_error(request.stream, request.entry_id)
    is_repeat = outcome.kind == "again"
    if is_repeat and (other := missing_letters.find_other_removal(departure, outcome.new_id)):
        # It left after it was read, and before the intent was declared.
        settle(outcome)
        edited = None if departure.edited is None else packing.unpack(departure.edited)
        if not _has_same_edits(other, edited):
            raise missing_letters.departed_error(other)
        return _prepare_repeat(request, other)
    return PreparedRemoval(request, departure, outcome, is_repeat, outcome.new_id)
