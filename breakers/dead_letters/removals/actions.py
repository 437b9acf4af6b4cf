"""Retry and discard of a single letter.

A removal is first prepared: an intent is committed and executed in Redis, in transactions of its
own, which can be repeated. It is then recorded: the outcome and the audit row are written. If the
process dies in between, `breakers.dead_letters.intent_sweeper` settles the intent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from breakers.dead_letters.letters import edits, ids
from breakers.dead_letters.letters.entries import LetterEntry, Pairs, pack_pairs
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import reader
from controlplane.core.actors import Actor
from controlplane.core.errors import Conflict, NotFound

from . import audit_rows, execution, intents, missing_letters, settlement
from .execution import RemovalOutcome

RETRY, DISCARD = Departure.Action.RETRY, Departure.Action.DISCARD


@dataclass(frozen=True, kw_only=True)
class RemovalRequest:
    """A request to retry or discard a letter; `edited_fields` are new values for a retry."""

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
    """A removal that was executed in Redis and has to be recorded.

    `outcome` is None for a dry run, and for the repeat of a removal that is already settled.
    """

    request: RemovalRequest
    departure: Departure | None = None
    outcome: RemovalOutcome | None = None
    repeated: bool = False
    new_id: str = ""

    def record(self, now: datetime) -> dict[str, Any]:
        """Settle the intent, write the audit row, and return the response."""
        stream, departure, repeated = self.request.stream, self.departure, self.repeated
        if departure is not None and self.outcome is not None:
            outcomes = {departure.pk: self.outcome}
            settled = settlement.settle_intents(stream, [departure], outcomes, now)
            audit_rows.record_removals(settled["done"], now, actor=self.request.actor)
            repeated = repeated or not settled["done"]
        if self.request.action == RETRY:
            return {
                "retried": True,
                "new_id": self.new_id or None,
                "repeated": repeated,
                "delivery": execution.delivery_guarantee(stream),
            }
        pk = departure.pk if departure is not None else None
        return {"discarded": True, "departure": pk, "repeated": repeated}


def remove_letter(**fields: Any) -> dict[str, Any]:
    """Retry or discard a letter; return the response. Must run outside of a transaction.

    `fields` are those of :class:`RemovalRequest`.
    """
    prepared = prepare_removal(RemovalRequest(**fields))
    with transaction.atomic():
        return prepared.record(prepared.request.now)


retry = partial(remove_letter, action=RETRY)
discard = partial(remove_letter, action=DISCARD)


def prepare_removal(request: RemovalRequest) -> PreparedRemoval:
    """Declare the removal and execute it in Redis, or find that it was done before.

    Raises :class:`Forbidden`, :class:`InvalidInput`, :class:`NotFound`, :class:`Conflict` if the
    letter is gone or has another open intent, :class:`ServerRefused`, and
    :class:`ServerUnavailable`. If the server is unavailable, a declared intent is executed later,
    and a repeat of the request continues it.
    """
    settlement.require_authority(request.actor, request.action, request.stream)
    reason = settlement.require_reason(request.reason)
    if request.stream.source == LetterStream.Source.OUTBOX:
        raise NotFound("Messages of the outbox are not in a stream. Retry them in the outbox.")
    ids.to_position(request.entry_id)
    entry = reader.read_entry(request.stream.server, request.stream.name, request.entry_id)
    if entry is None:
        return _prepare_missing(request)
    edited = edits.apply_edits(entry, request.edited_fields) if request.edited_fields else None
    require_removable(entry, edited, request.action)
    _require_no_other_intent(request, entry, edited)
    if request.dry_run:
        return PreparedRemoval(request)
    # A letter removed before it was indexed would not count as arrived.
    indexer.catch_up(request.stream, request.now, seconds=0.5)
    declared = intents.declare_intents(
        stream=request.stream,
        entries=[entry],
        action=request.action,
        actor=request.actor,
        reason=reason,
        edits=None if edited is None else {entry.id: edited},
        check=partial(settlement.require_authority, request.actor, request.action, request.stream),
        now=request.now,
    )
    if not declared:
        departure = missing_letters.find_last_departure(request.stream, entry.position)
        if departure is not None:
            raise missing_letters.departed_error(departure)
        raise Conflict(f"The dead letter {request.entry_id} is being changed. Try again.")
    return _execute(request, declared[0])


def require_removable(entry: LetterEntry, edited: Pairs | None, action: str) -> None:
    """Raise :class:`Conflict` if the letter is too large, or has too many fields for a retry."""
    if entry.size_bytes > settlement.MAX_BYTES or not entry.is_whole:
        raise Conflict(
            f"This letter has {entry.size_bytes:,} bytes. Letters of more than"
            f" {settlement.MAX_BYTES:,} can't be archived, so they can't be removed.",
            why="too_large",
        )
    fields = entry.original if edited is None else edited
    if action == RETRY and len(fields) > settlement.MAX_FIELDS:
        raise Conflict(
            f"This message has {len(fields):,} fields; at most {settlement.MAX_FIELDS:,} can be"
            " sent.",
            why="too_many_fields",
        )


def _require_no_other_intent(
    request: RemovalRequest, entry: LetterEntry, edited: Pairs | None
) -> None:
    """Raise :class:`Conflict` if the letter has an open intent, unless it is of this request."""
    rows = Departure.objects.filter(stream=request.stream, position=entry.position)
    departure = rows.filter(state=Departure.State.INTENDED).defer("fields").first()
    if departure is None:
        return
    is_mine = departure.job_id is None and departure.by == request.actor.label
    if not is_mine or departure.action != request.action or not _has_same_edits(departure, edited):
        raise missing_letters.departed_error(departure)


def _has_same_edits(departure: Departure, edited: Pairs | None) -> bool:
    """Return True if the removal has the edited message `edited`; None means unedited."""
    packed = bytes(departure.edited) if departure.edited is not None else None
    return packed == (pack_pairs(edited) if edited is not None else None)


def _prepare_missing(request: RemovalRequest) -> PreparedRemoval:
    """Prepare a request whose letter is gone because the same removal was begun before.

    For a letter that is gone for another reason, raise :func:`missing_letter_error` or
    :func:`departed_error`.
    """
    position = ids.to_position(request.entry_id)
    departure = missing_letters.find_last_departure(request.stream, position)
    if departure is None or departure.action != request.action:
        raise missing_letters.missing_letter_error(request.stream, request.entry_id)
    departure.refresh_from_db(fields=["fields", "edited"])
    edited = None
    if request.edited_fields:
        edited = edits.apply_edits(departure.entry, request.edited_fields)
    if not _has_same_edits(departure, edited):
        raise missing_letters.departed_error(departure)
    if departure.state == Departure.State.INTENDED and departure.job_id is None:
        # It was probably executed by a process that died before recording it.
        return _execute(request, departure)
    return _prepare_repeat(request, departure)


def _prepare_repeat(request: RemovalRequest, departure: Departure) -> PreparedRemoval:
    if departure.state != Departure.State.DONE:
        raise missing_letters.departed_error(departure)
    return PreparedRemoval(request, departure, repeated=True, new_id=departure.new_id)


def _execute(request: RemovalRequest, departure: Departure) -> PreparedRemoval:
    stream = request.stream

    def settle(outcome: RemovalOutcome) -> None:
        with transaction.atomic():
            outcomes = {departure.pk: outcome}
            settlement.settle_intents(stream, [departure], outcomes, request.now)

    outcome = execution.execute_or_withdraw(
        stream.server,
        lambda: execution.execute_intents(stream, [departure])[departure.pk],
        settle,
        noted="Your request",
    )
    if outcome.kind == "gone":
        settle(outcome)
        raise missing_letters.missing_letter_error(request.stream, request.entry_id)
    is_repeat = outcome.kind == "again"
    if is_repeat and (other := missing_letters.find_other_removal(departure, outcome.new_id)):
        # The other removal came after the letter was read, and before the intent was declared.
        settle(outcome)
        if not _has_same_edits(other, departure.edited_pairs):
            raise missing_letters.departed_error(other)
        return _prepare_repeat(request, other)
    return PreparedRemoval(request, departure, outcome, is_repeat, outcome.new_id)
