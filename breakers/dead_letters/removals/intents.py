"""Declaration of removal intents: whole letters are archived and committed before their removal."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from breakers.dead_letters.letters.entries import LetterEntry, Pairs, pack_pairs
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.models import MAX_ERROR_LENGTH, POSITION, Departure, LetterStream
from controlplane.core import authority, deadline
from controlplane.core.actors import Actor
from controlplane.core.jobs.models import Job
from controlplane.core.sql import fetch_all

MAX_TYPE_LENGTH = 200
MAX_ACTOR_LENGTH = 200
State = Departure.State
_OWN = [
    "position",
    "fields",
    "edited",
    "size_bytes",
    "error_type",
    "error",
    "fingerprint",
    "retry_of",
]
"""Columns that differ between the letters of one call."""
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
    """Archive the entries, committing an open removal intent for each; return the intents.

    `entries` have to be whole. `edits` maps entry ids to the edited messages to send to the origin.
    `check` is called in the transaction; if it raises, nothing is committed.

    If a letter already has an open intent with the same action and job (without a job: the same
    actor), that intent is returned. A letter with any other open intent is left out.

    Raises :class:`Forbidden` if the actor has lost the permission meanwhile, and
    :class:`Unavailable` if the request has timed out. Both are checked here because the audit row
    is written only after the letter was removed.
    """
    if not all(entry.is_whole for entry in entries):
        raise ValueError("An entry that was not read completely can't be archived.")
    shared = {
        "stream": stream,
        "action": action,
        "job": job,
        "reason": reason.strip(),
        "by": actor.label[:MAX_ACTOR_LENGTH],
        "intended_at": now,
    }
    edited = edits or {}
    rows = [Departure(**shared, **_own_fields(entry, edited.get(entry.id))) for entry in entries]
    rows.sort(key=lambda row: row.position)  # Lock rows in one order to avoid deadlocks.
    with transaction.atomic(durable=True):
        if check is not None:
            check()
        ours = _insert_intents(rows)
        others = [row.position for row in rows if row.pk is None]
        mine = Q(job=job) if job is not None else Q(job=None, by=shared["by"])
        earlier = Departure.objects.filter(
            mine, stream=stream, position__in=others, state=State.INTENDED, action=action
        )
        declared = sorted([*ours, *earlier], key=lambda row: row.position)
        deadline.check()
        authority.require_still([actor])
        return declared


def _own_fields(entry: LetterEntry, edited: Pairs | None) -> dict[str, object]:
    redaction = configured_redaction()
    return {
        "position": entry.position,
        "fields": pack_pairs(entry.pairs),
        "edited": None if edited is None else pack_pairs(edited),
        "size_bytes": entry.size_bytes,
        "error_type": redaction.error_type(entry)[:MAX_TYPE_LENGTH],
        "error": redaction.error(entry)[:MAX_ERROR_LENGTH],
        "fingerprint": redaction.fingerprint(entry).digest,
        # A longer text is no entry id.
        "retry_of": entry.retry_of if len(entry.retry_of) <= POSITION else "",
    }


def _insert_intents(rows: Sequence[Departure]) -> list[Departure]:
    """Insert these rows, except of letters with an open intent; return the inserted ones."""
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
