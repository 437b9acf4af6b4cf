"""JSON resources of streams, groups and departures, for the API and live messages."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from breakers.dead_letters import history
from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.letters.redaction import Redaction
from controlplane.core.canonical import timestamp

from .letters import ids, packing, presentation
from .letters.presentation import DisplayLimits
from .models import Departure, LetterStream
from .monitoring.groups import ErrorGroup
from .removals import archive


def stream_resources(
    rows: Sequence[LetterStream], growth: dict[int, float]
) -> list[dict[str, Any]]:
    """Return streams as the inbox lists them; `growth` is in letters a minute, by primary key."""
    return [stream_resource(row, growth.get(row.pk, 0.0)) for row in rows]


def stream_resource(row: LetterStream, growth_per_minute: float) -> dict[str, Any]:
    """Return a stream as last sampled."""
    return {
        "source": row.source,
        "server": row.server,
        "name": row.name,
        "origin": row.origin or None,
        "depth": row.depth,
        "oldest_at": _timestamp(row.oldest_at) if row.depth else None,
        "newest_at": _timestamp(row.newest_at) if row.depth else None,
        "growth_per_minute": growth_per_minute,
        "alerting": row.alarmed_at is not None,
        "alerting_since": _timestamp(row.alarmed_at),
        "arrived_total": row.arrived_total,
        "retried_total": row.retried_total,
        "vanished_total": row.vanished_total,
        "sampled_at": _timestamp(row.sampled_at),
        "gone_at": _timestamp(row.gone_at),
    }


def group_resource(one: ErrorGroup, redaction: Redaction) -> dict[str, Any]:
    """Return a group; `first` and `last` are times of failure."""
    first, last = timestamp(one.first_at), timestamp(one.last_at)
    return {
        "fingerprint": one.fingerprint,
        "error_type": _redact(one.error_type, redaction),
        "pattern": _redact(one.pattern, redaction),
        "sample": _redact(one.sample, redaction),
        "count": one.count,
        "first": first,
        "last": last,
        "first_at": first,
        "last_at": last,
        "oldest_id": ids.to_entry_id(one.oldest),
        "newest_id": ids.to_entry_id(one.newest),
    }


def departure_resource(row: Departure, redaction: Redaction, now: datetime) -> dict[str, Any]:
    """Return a departure without payload; `stream` has to be selected."""
    until = archive.restorable_until(row)
    return {
        "id": row.pk,
        "server": row.stream.server,
        "stream": row.stream.name,
        "message_id": ids.to_entry_id(row.position),
        "action": row.action,
        "state": row.state,
        "reason": row.reason,
        "by": row.by,
        "intended_at": timestamp(row.intended_at),
        "done_at": _timestamp(row.done_at),
        "new_id": row.new_id or None,
        "job": row.job_id,
        "error": _redact(row.error, redaction),
        "error_type": _redact(row.error_type, redaction),
        "fingerprint": row.fingerprint,
        "retry_of": row.retry_of or None,
        "size_bytes": row.size_bytes,
        "restored_by": row.restored_by or None,
        "restored_at": _timestamp(row.restored_at),
        "restore_reason": row.restore_reason,
        "restorable": until is not None and until > now,
        "restorable_until": _timestamp(until),
    }


def full_departure_resource(
    row: Departure,
    redaction: Redaction,
    now: datetime,
    measure: DisplayLimits = presentation.DETAIL_LIMITS,
) -> dict[str, Any]:
    """Return a departure with its fields, its edited fields and its history."""
    entry = LetterEntry(ids.to_entry_id(row.position), packing.unpack(row.fields))
    edited = None
    if row.edited is not None:
        sent = presentation.truncate_entry(
            LetterEntry(entry.id, packing.unpack(row.edited)), measure
        )
        sent = redaction.redact_entry(sent)
        edited, _ = presentation.display_fields(sent.pairs, sizes=sent.sizes, measure=measure)
    letter = presentation.letter_resource(
        entry, redaction=redaction, fingerprint=row.fingerprint, measure=measure
    )
    return {
        **departure_resource(row, redaction, now),
        "fields": letter["fields"],
        "truncated": letter["truncated"],
        "attempts": letter["attempts"],
        "failed_at": letter["failed_at"],
        "group": letter["group"],
        "edited_fields": edited,
        "history": [
            history.event_resource(one)
            for one in history.list_archived_events(row, redaction=redaction)
        ],
    }


def _redact(said: str, redaction: Redaction) -> str:
    return redaction.redact_text(said.encode()).decode("utf-8", "replace")


def _timestamp(at: datetime | None) -> str | None:
    return timestamp(at) if at else None
