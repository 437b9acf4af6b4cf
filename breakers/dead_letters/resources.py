"""Streams of dead letters, groups and what left, as the API and live messages show them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from breakers.dead_letters import history
from breakers.dead_letters.letters.entries import Entry
from breakers.dead_letters.letters.redaction import Redaction
from controlplane.core.canonical import timestamp

from .letters import ids, packing, presentation
from .letters.presentation import Measure
from .models import Departure, LetterStream
from .monitoring.groups import Group
from .removals import archive


def streams(rows: Sequence[LetterStream], growth: dict[int, float]) -> list[dict[str, Any]]:
    """Streams as the inbox lists them; `growth` is in letters a minute, by primary key."""
    return [stream(row, growth.get(row.pk, 0.0)) for row in rows]


def stream(row: LetterStream, growth_per_minute: float) -> dict[str, Any]:
    """One of them, as it was sampled last."""
    return {
        "source": row.source,
        "server": row.server,
        "name": row.name,
        "origin": row.origin or None,
        "depth": row.depth,
        "oldest_at": _time(row.oldest_at) if row.depth else None,
        "newest_at": _time(row.newest_at) if row.depth else None,
        "growth_per_minute": growth_per_minute,
        "alerting": row.alarmed_at is not None,
        "alerting_since": _time(row.alarmed_at),
        "arrived_total": row.arrived_total,
        "retried_total": row.retried_total,
        "vanished_total": row.vanished_total,
        "sampled_at": _time(row.sampled_at),
        "gone_at": _time(row.gone_at),
    }


def group(one: Group, redaction: Redaction) -> dict[str, Any]:
    """Letters that failed alike. `first` and `last` are when they failed."""
    first, last = timestamp(one.first_at), timestamp(one.last_at)
    return {
        "fingerprint": one.fingerprint,
        "error_type": _hidden(one.error_type, redaction),
        "pattern": _hidden(one.pattern, redaction),
        "sample": _hidden(one.sample, redaction),
        "count": one.count,
        "first": first,
        "last": last,
        "first_at": first,
        "last_at": last,
        "oldest_id": ids.entry_id(one.oldest),
        "newest_id": ids.entry_id(one.newest),
    }


def departure(row: Departure, redaction: Redaction, now: datetime) -> dict[str, Any]:
    """A letter that left through us, without its payload; `stream` was fetched with it."""
    until = restorable_until(row)
    return {
        "id": row.pk,
        "server": row.stream.server,
        "stream": row.stream.name,
        "message_id": ids.entry_id(row.position),
        "action": row.action,
        "state": row.state,
        "reason": row.reason,
        "by": row.by,
        "intended_at": timestamp(row.intended_at),
        "done_at": _time(row.done_at),
        "new_id": row.new_id or None,
        "job": row.job_id,
        "error": _hidden(row.error, redaction),
        "error_type": _hidden(row.error_type, redaction),
        "fingerprint": row.fingerprint,
        "retry_of": row.retry_of or None,
        "size_bytes": row.size_bytes,
        "restored_by": row.restored_by or None,
        "restored_at": _time(row.restored_at),
        "restore_reason": row.restore_reason,
        "restorable": until is not None and until > now,
        "restorable_until": _time(until),
    }


def whole_departure(
    row: Departure, redaction: Redaction, now: datetime, measure: Measure = presentation.FULLY
) -> dict[str, Any]:
    """The same with its fields, those that went out instead if it was edited, and its history."""
    entry = Entry(ids.entry_id(row.position), packing.unpack(row.fields))
    edited = None
    if row.edited is not None:
        sent = presentation.cut(Entry(entry.id, packing.unpack(row.edited)), measure)
        sent = redaction.entry(sent)
        edited, _ = presentation.fields(sent.pairs, sizes=sent.sizes, measure=measure)
    letter = presentation.letter(
        entry, redaction=redaction, fingerprint=row.fingerprint, measure=measure
    )
    return {
        **departure(row, redaction, now),
        "fields": letter["fields"],
        "truncated": letter["truncated"],
        "attempts": letter["attempts"],
        "failed_at": letter["failed_at"],
        "group": letter["group"],
        "edited_fields": edited,
        "history": [
            history.resource(one) for one in history.of_departure(row, redaction=redaction)
        ],
    }


def restorable_until(row: Departure) -> datetime | None:
    """Until when it can be put back; None if it can't: what was retried is in its origin again."""
    states = Departure.State
    is_in_origin = row.state == states.DONE and row.action == Departure.Action.RETRY
    if row.state not in (states.DONE, states.GONE) or is_in_origin or row.done_at is None:
        return None
    return row.done_at + archive.KEPT


def _hidden(said: str, redaction: Redaction) -> str:
    return redaction.within(said.encode()).decode("utf-8", "replace")


def _time(at: datetime | None) -> str | None:
    return timestamp(at) if at else None
