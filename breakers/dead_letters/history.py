"""History of a dead letter: its failures, removals and restores.

A retried message that fails again names the previous dead letter, whose removal is in the archive.
The history follows this chain as far as the archive reaches.
"""

from collections.abc import Iterator
from typing import Any

from django.db import models

from breakers.dead_letters.letters import differences, ids
from breakers.dead_letters.letters.differences import FieldChange
from breakers.dead_letters.letters.entries import (
    ERROR,
    ERROR_TYPE,
    GROUP,
    RESERVED_NAMES,
    RETRY_OF,
    LetterEntry,
    Pairs,
)
from breakers.dead_letters.letters.redaction import Redaction
from breakers.dead_letters.models import Departure, LetterStream
from controlplane.core.canonical import timestamp_or_none
from controlplane.core.errors import NotFound

MAX_LOOKBACK = 20
MAX_COMPARED_BYTES = 1024 * 1024
"""Maximum size of a message for which the history shows the edited fields."""
FAILED = "failed"
_DONE = {
    Departure.Action.RETRY: "retried",
    Departure.Action.DISCARD: "discarded",
    Departure.Action.PURGE: "purged",
    Departure.Action.AGE: "archived",
    Departure.Action.LENGTH: "archived",
}


def list_events(
    stream: LetterStream, entry: LetterEntry, *, redaction: Redaction | None
) -> list[dict[str, Any]]:
    """Return the failures, removals and restores of a letter, oldest first.

    The `kind` of an event is `failed`, `retried`, `discarded`, `purged`, `archived` (by retention),
    `restored`, `leaving` (removal not settled yet) or `gone` (removed by another Redis client).
    `id` is the id of the dead letter at the time of the event, `new_id` its id after the event.
    """
    events = [_failure_event(entry, redaction)]
    for departure in _list_departures(stream, entry.position):
        events += _removal_events(departure, redaction)
    retry_of = entry.retry_of
    visited: set[str] = set()
    while retry_of and retry_of not in visited and len(visited) < MAX_LOOKBACK:
        visited.add(retry_of)
        try:
            position = ids.to_position(retry_of)
        except NotFound:  # A producer may write anything into the field.
            break
        retries = [one for one in _list_departures(stream, position) if one.action == "retry"]
        if not retries:
            break
        failed = _archived_entry(retries[-1])
        removal = _removal_events(retries[-1], redaction)
        events = [_failure_event(failed, redaction), *removal, *events]
        retry_of = failed.retry_of
    return events


def event_resource(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event of a letter's history as JSON, without empty fields."""
    resource = {name: value for name, value in event.items() if value not in ("", None)}
    resource["at"] = timestamp_or_none(event["at"])
    if "changes" in event:
        resource["changes"] = [vars(one) for one in event["changes"]]
    return resource


def _failure_event(entry: LetterEntry, redaction: Redaction | None) -> dict[str, Any]:
    # Only the truncated error fields are redacted, as the payload may have megabytes.
    most = 4 * differences.MAX_SHOWN_BYTES  # A character has four bytes at most.
    names = (ERROR, ERROR_TYPE, GROUP)
    pairs = tuple((name, value[:most]) for name, value in entry.pairs if name in names)
    failure = LetterEntry(entry.id, pairs)
    redacted = failure if redaction is None else redaction.redact_entry(failure)
    return {
        "kind": FAILED,
        "id": entry.id,
        "at": entry.failed_at,
        "error": redacted.error[: differences.MAX_SHOWN_BYTES],
        "error_type": redacted.error_type,
        "attempts": entry.attempts,
        "group": redacted.group,
    }


def _removal_events(departure: Any, redaction: Redaction | None) -> Iterator[dict[str, Any]]:
    states = Departure.State
    kind = _DONE[Departure.Action(departure.action)]
    kind = {states.INTENDED: "leaving", states.GONE: "gone"}.get(states(departure.state), kind)
    is_restored = departure.state == states.RESTORED
    yield {
        "kind": kind,
        "id": departure.entry_id,
        "at": departure.done_at or departure.intended_at,
        "by": departure.by,
        "reason": departure.reason,
        "action": departure.action,
        "new_id": "" if is_restored else departure.new_id,
        "edited": departure.is_edited,
        "changes": _list_edits(departure, redaction),
        "departure": departure.pk,
    }
    if is_restored:
        yield {
            "kind": "restored",
            "id": departure.entry_id,
            "at": departure.restored_at,
            "by": departure.restored_by,
            "reason": departure.restore_reason,
            "new_id": departure.new_id,
            "edited": False,
            "changes": [],
            "departure": departure.pk,
        }


def _list_edits(departure: Any, redaction: Redaction | None) -> list[FieldChange]:
    is_compared = departure.size_bytes <= MAX_COMPARED_BYTES and departure.is_edited
    after = departure.edited_pairs if is_compared else None
    if after is None:
        return []
    before = _message_pairs(departure.entry.pairs)
    return differences.compare_messages(before, _message_pairs(after), redaction)


def _archived_entry(departure: Departure) -> LetterEntry:
    """Return the removed letter; if it is large, only its error and retry id, to save time."""
    if departure.size_bytes <= MAX_COMPARED_BYTES:
        return departure.entry
    texts = {ERROR: departure.error, ERROR_TYPE: departure.error_type}
    if departure.retry_of:
        texts[RETRY_OF] = ids.to_entry_id(departure.retry_of)
    pairs = tuple((name, text.encode()) for name, text in texts.items() if text)
    return LetterEntry(departure.entry_id, pairs)


def _list_departures(stream: LetterStream, position: str) -> list[Any]:
    """Return a letter's removals without payloads; `is_edited` is True for an edited retry."""
    rows = Departure.objects.without_payload().filter(stream=stream, position=position)
    edited = models.Case(models.When(edited=None, then=False), default=True)
    return list(rows.annotate(is_edited=edited).order_by("id")[:MAX_LOOKBACK])


def _message_pairs(pairs: Pairs) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in pairs if name not in RESERVED_NAMES]
