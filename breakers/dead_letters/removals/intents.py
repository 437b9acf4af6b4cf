"""Declaration of intents: letters are archived whole before they are removed."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from django.db import models, transaction
from django.db.models import Q

from breakers.dead_letters.letters import packing
from breakers.dead_letters.letters.entries import LetterEntry, Pairs
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import MAX_ERROR_LENGTH, POSITION, Departure, LetterStream
from breakers.sql import fetch_all
from controlplane.core import authority, deadline
from controlplane.core.actors import Actor
from controlplane.core.jobs.models import Job

MAX_TYPE_LENGTH = 200
MAX_ACTOR_LENGTH = 200
_OWN = (
    "position",
    "fields",
    "edited",
    "size_bytes",
    "error_type",
    "error",
    "fingerprint",
    "retry_of",
)
"""Columns that differ between letters, in the order of the statement below."""
_DECLARED = """
    INSERT INTO breakers_departure (stream_id, action, state, job_id, reason, by, intended_at,
        new_id, restored_by, restore_reason, position, fields, edited, size_bytes, error_type,
        error, fingerprint, retry_of)
    SELECT %(stream)s, %(action)s, 'intended', %(job)s, %(reason)s, %(by)s, %(now)s, '', '', '',
        given.* FROM unnest(%(position)s::text[], %(fields)s::bytea[], %(edited)s::bytea[],
            %(size_bytes)s::bigint[], %(error_type)s::text[], %(error)s::text[],
            %(fingerprint)s::text[], %(retry_of)s::text[]) AS given
    ON CONFLICT (stream_id, position) WHERE state = 'intended' DO NOTHING
    RETURNING position, id
"""


def declare_intents(
    *,
    stream: LetterStream,
    entries: Sequence[LetterEntry],
    action: str,
    actor: Actor,
    reason: str,
    job: Job | None = None,
    edits: Mapping[str, Pairs] | None = None,
    check: Callable[[], None] | None = None,
    now: datetime,
) -> list[Departure]:
    """Archive these letters as intents; committed when it returns.

    `entries` have to be whole. `edits` are the messages that go to the origin instead, by entry id.
    Returns the open intents of this caller: another's open intent is left out, one of the same job,
    or of the same actor without a job, is returned as it was declared. `check` is called in the
    transaction, which is rolled back if it raises.

    Raises :class:`Forbidden` if the actor has lost their permission meanwhile, and
    :class:`Unavailable` if the request has timed out meanwhile: the audit row, which checks that
    elsewhere, is written after the letter has left.
    """
    if not all(entry.is_whole for entry in entries):
        raise ValueError("An entry that was not read wholly can't be archived.")
    known = edits or {}
    rows = [
        Departure(
            stream=stream,
            action=action,
            job=job,
            reason=reason.strip(),
            by=actor.label[:MAX_ACTOR_LENGTH],
            intended_at=now,
            **_departure_fields(entry, known.get(entry.id)),
        )
        for entry in entries
    ]
    # Sorted, so that two who declare the same letters wait for each other in one order.
    rows.sort(key=lambda row: row.position)
    with transaction.atomic(durable=True):
        if check is not None:
            check()
        ours = _insert_intents(rows)
        others = [row.position for row in rows if row.pk is None]
        earlier = _own_open_intents(stream, others, action, actor, job) if others else ()
        declared = sorted([*ours, *earlier], key=lambda row: row.position)
        deadline.check()
        authority.require_still([actor])
        return declared


def _departure_fields(entry: LetterEntry, edited: Pairs | None) -> dict[str, object]:
    """Return the archived fields of an entry; the error is redacted."""
    hiding = configured_redaction()
    return {
        "position": entry.position,
        "fields": packing.pack(entry.pairs),
        "edited": None if edited is None else packing.pack(edited),
        "size_bytes": entry.size_bytes,
        "error_type": hiding.error_type(entry)[:MAX_TYPE_LENGTH],
        "error": hiding.error(entry)[:MAX_ERROR_LENGTH],
        "fingerprint": hiding.fingerprint(entry).digest,
        "retry_of": _position_or_empty(entry.retry_of),
    }


def _insert_intents(rows: Sequence[Departure]) -> list[Departure]:
    """Insert the rows that have no open intent, by one statement that returns no payloads.

    Return them.
    """
    if not rows:
        return []
    one = rows[0]
    values = {
        "stream": one.stream_id,
        "action": one.action,
        "job": one.job_id,
        "reason": one.reason,
        "by": one.by,
        "now": one.intended_at,
        **{name: [getattr(row, name) for row in rows] for name in _OWN},
    }
    keys = dict(fetch_all(_DECLARED, values))
    for row in rows:
        row.pk = keys.get(row.position)
        row._state.adding = row.pk is None
    return [row for row in rows if row.pk is not None]


def _own_open_intents(
    stream: LetterStream, positions: Sequence[str], action: str, actor: Actor, job: Job | None
) -> models.QuerySet[Departure]:
    """Return the open intents for this action that belong to the job, or else to the actor."""
    whose = Q(job=job) if job is not None else Q(job=None, by=actor.label[:MAX_ACTOR_LENGTH])
    return Departure.objects.filter(
        whose, stream=stream, position__in=positions, state=Departure.State.INTENDED, action=action
    ).order_by("position")


def _position_or_empty(entry_id: str) -> str:
    """Return the id unless it is too long to be one."""
    return entry_id if len(entry_id) <= POSITION else ""
