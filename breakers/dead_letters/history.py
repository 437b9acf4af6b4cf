"""The history of a dead letter: its failures, and the removals and restores in between.

A retried message names the dead letter it came from, and the archive has the removal of that one,
so the history is a chain of these. It ends where the archive does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import models

from breakers.dead_letters.letters import differences, ids, packing
from breakers.dead_letters.letters.differences import FieldChange
from breakers.dead_letters.letters.entries import (
    ERROR,
    ERROR_TYPE,
    GROUP,
    METADATA,
    RETRY_COUNT,
    RETRY_OF,
    LetterEntry,
    Pairs,
)
from breakers.dead_letters.letters.redaction import Redaction
from breakers.dead_letters.models import Departure, LetterStream
from controlplane.core.canonical import timestamp
from controlplane.core.errors import NotFound

MAX_LOOKBACK = 20
MAX_COMPARED_BYTES = 1024 * 1024
"""Messages up to this size are compared with their edited version."""
FAILED = "failed"
_DONE = {
    Departure.Action.RETRY: "retried",
    Departure.Action.DISCARD: "discarded",
    Departure.Action.PURGE: "purged",
    Departure.Action.AGE: "archived",
    Departure.Action.LENGTH: "archived",
}


@dataclass(frozen=True)
class LetterEvent:
    """An event in the history of a letter.

    `kind` is `failed`, `retried`, `discarded`, `purged`, `archived` (by retention), `restored`,
    `leaving` (intended) or `gone` (removed by somebody else). `id` is the dead letter's at that
    time, `new_id` its id afterwards.
    """

    kind: str
    id: str
    at: datetime | None
    error: str = ""
    error_type: str = ""
    attempts: int | None = None
    group: str = ""
    by: str = ""
    reason: str = ""
    action: str = ""
    new_id: str = ""
    edited: bool = False
    changes: tuple[FieldChange, ...] = ()
    departure: int | None = None


def list_events(
    stream: LetterStream,
    entry: LetterEntry,
    *,
    redaction: Redaction | None,
    departures: list[Departure] | None = None,
) -> list[LetterEvent]:
    """Return the events of an entry, oldest first.

    `departures` are those of this entry, if known.
    """
    own = _list_departures(stream, entry.position) if departures is None else departures
    events = [_failure_event(entry, redaction)]
    for departure in own:
        events += _removal_events(departure, redaction)
    for earlier, failed in _earlier_retries(stream, entry.retry_of):
        events = [_failure_event(failed, redaction), *_removal_events(earlier, redaction), *events]
    return events


def list_archived_events(departure: Departure, *, redaction: Redaction | None) -> list[LetterEvent]:
    """Return the events of a removed letter, oldest first."""
    entry = LetterEntry(ids.to_entry_id(departure.position), packing.unpack(departure.fields))
    return list_events(departure.stream, entry, redaction=redaction)


def event_resource(event: LetterEvent) -> dict[str, Any]:
    """Return an event as JSON, without empty fields."""
    said: dict[str, Any] = {
        "kind": event.kind,
        "id": event.id,
        "at": timestamp(event.at) if event.at else None,
    }
    for name in ("error", "error_type", "group", "by", "reason", "action", "new_id"):
        if getattr(event, name):
            said[name] = getattr(event, name)
    for name in ("attempts", "departure"):
        if getattr(event, name) is not None:
            said[name] = getattr(event, name)
    if event.kind != FAILED:
        said["edited"] = event.edited
        said["changes"] = [
            {"path": one.path, "before": one.before, "after": one.after} for one in event.changes
        ]
    return said


def _failure_event(entry: LetterEntry, redaction: Redaction | None) -> LetterEvent:
    redacted = (
        _failure_fields(entry)
        if redaction is None
        else redaction.redact_entry(_failure_fields(entry))
    )
    return LetterEvent(
        FAILED,
        id=entry.id,
        at=entry.failed_at,
        error=redacted.error[: differences.MAX_SHOWN_BYTES],
        error_type=redacted.error_type,
        attempts=entry.attempts,
        group=redacted.group,
    )


def _failure_fields(entry: LetterEntry) -> LetterEntry:
    """Return an entry with only the truncated error fields, as the payload may have megabytes."""
    most = 4 * differences.MAX_SHOWN_BYTES  # A character has four bytes at most.
    names = (ERROR, ERROR_TYPE, GROUP)
    return LetterEntry(
        entry.id, tuple((name, v[:most]) for name, v in entry.pairs if name in names)
    )


def _removal_events(departure: Departure, redaction: Redaction | None) -> Iterator[LetterEvent]:
    states = Departure.State
    kind = _DONE[Departure.Action(departure.action)]
    kind = {states.INTENDED: "leaving", states.GONE: "gone"}.get(states(departure.state), kind)
    is_restored = departure.state == states.RESTORED
    yield LetterEvent(
        kind,
        id=ids.to_entry_id(departure.position),
        at=departure.done_at or departure.intended_at,
        by=departure.by,
        reason=departure.reason,
        action=departure.action,
        new_id="" if is_restored else departure.new_id,
        edited=_is_edited(departure),
        changes=tuple(_list_edits(departure, redaction)),
        departure=departure.pk,
    )
    if is_restored:
        yield LetterEvent(
            "restored",
            id=ids.to_entry_id(departure.position),
            at=departure.restored_at,
            by=departure.restored_by,
            reason=departure.restore_reason,
            new_id=departure.new_id,
            departure=departure.pk,
        )


def _list_edits(departure: Departure, redaction: Redaction | None) -> list[FieldChange]:
    packed = departure.edited if _is_compared(departure) else None
    if packed is None:
        return []
    before, after = packing.unpack(departure.fields), packing.unpack(packed)
    return differences.compare_messages(_message_pairs(before), _message_pairs(after), redaction)


def _earlier_retries(
    stream: LetterStream, retry_of: str
) -> Iterator[tuple[Departure, LetterEntry]]:
    """Yield the retries that led to it, the last first, each with the letter at that time."""
    seen: set[str] = set()
    while retry_of and retry_of not in seen and len(seen) < MAX_LOOKBACK:
        seen.add(retry_of)
        try:
            position = ids.to_position(retry_of)
        except NotFound:  # Whatever a producer wrote there.
            return
        found = [one for one in _list_departures(stream, position) if one.action == "retry"]
        if not found:
            return
        entry = _archived_entry(found[-1])
        yield found[-1], entry
        retry_of = entry.retry_of


def _archived_entry(departure: Departure) -> LetterEntry:
    """Return the removed letter; of a large one only the known fields, without unpacking it."""
    entry_id = ids.to_entry_id(departure.position)
    if departure.size_bytes <= MAX_COMPARED_BYTES:
        return LetterEntry(entry_id, packing.unpack(departure.fields))
    known = {ERROR: departure.error, ERROR_TYPE: departure.error_type}
    if departure.retry_of:
        known[RETRY_OF] = ids.to_entry_id(departure.retry_of)
    return LetterEntry(
        entry_id, tuple((name, said.encode()) for name, said in known.items() if said)
    )


def _list_departures(stream: LetterStream, position: str) -> list[Departure]:
    """Return the removals of a position without payloads."""
    rows = Departure.objects.without_payload().filter(stream=stream, position=position)
    edited = models.Case(models.When(edited=None, then=False), default=True)
    return list(rows.annotate(is_edited=edited).order_by("id")[:MAX_LOOKBACK])


def _is_edited(departure: Departure) -> bool:
    known: bool | None = getattr(departure, "is_edited", None)
    return departure.edited is not None if known is None else known


def _is_compared(departure: Departure) -> bool:
    return departure.size_bytes <= MAX_COMPARED_BYTES and _is_edited(departure)


def _message_pairs(pairs: Pairs) -> list[tuple[bytes, bytes]]:
    """Return the pairs of the message without the metadata that failing and retrying add."""
    ours = METADATA | {RETRY_OF, RETRY_COUNT}
    return [(name, value) for name, value in pairs if name not in ours]
