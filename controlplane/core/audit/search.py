"""Finding a text in the audit trail: trigrams from an index first, the exact check after.

The trail is searched in segments of 16,384 rows from the end that is asked for, until the page is
full. So neither a text that nearly every row has nor one that none has takes long, and what is
found comes in order without sorting. The migration `0015_audit_trigrams` says what is indexed.
"""

from typing import Any

from django.db.models import BigIntegerField, BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from controlplane.core.audit.models import AuditEntry

PLACES = ("actor_name", "action", "target", "reason")
MIN_BYTES = 3
"""Of a text in capitals; a shorter one has no trigram."""
MAX_SCANNED = 20_000
"""So many of the newest rows are looked through for a shorter text."""
MAX_TRIGRAMS = 16
"""Of a longer text so many are looked up, evenly spread: each costs as much again."""
SEGMENT_BITS = 14
MAX_ID = BigIntegerField.MAX_BIGINT

_IN_SEGMENT = rf"""
    "core_auditentry"."id" = ANY (ARRAY (
        SELECT e.id FROM core_auditentry e
        WHERE core_audit_trigrams(
            e.id >> {SEGMENT_BITS},
            e.actor_name || E'\n' || e.action || E'\n' || e.target || E'\n' || e.reason
        ) @> segment.trigrams
    ))
"""  # noqa: S608 - a number of ours
_NEWEST = "(SELECT coalesce(max(id), 0) FROM core_auditentry)"
_BY_SEGMENT = """
    SELECT found.* FROM (
        SELECT ARRAY (
            SELECT n::bigint << 24 | trigram
            FROM unnest(core_audit_trigrams(0, %s)) WITH ORDINALITY AS each (trigram, place)
            WHERE place %% %s = 0
        ) AS trigrams
        FROM generate_series({start}, {end}, {step}) AS n OFFSET 0
    ) AS segment
    CROSS JOIN LATERAL ({rows}) AS found LIMIT %s
"""


def is_short(text: str) -> bool:
    """Whether a text is too short for the index, so that only the newest rows are searched."""
    return _folded_bytes(text) < MIN_BYTES


def containing(text: str) -> Q:
    """The rows that have the text, in any case; the exact check, which by itself reads all rows."""
    found = Q()
    for place in PLACES:
        found |= Q(**{f"{place}__icontains": text})
    return found


def among_newest() -> Q:
    """The newest rows, which a text that :func:`is_short` is looked for in."""
    return Q(id__gt=RawSQL(f"{_NEWEST} - %s", [MAX_SCANNED]))  # noqa: S611 - no text of others


def by_segment(
    rows: QuerySet[AuditEntry, Any],
    text: str,
    *,
    ascending: bool,
    position: int | None,
    limit: int,
) -> tuple[str, tuple[Any, ...]]:
    """The statement for the first `limit` of `rows` that have `text`, with its parameters.

    `rows` are in order of their ids, `ascending` or not, cut to `limit` and begin at `position`, if
    one is given. `text` must not be :func:`is_short`.
    """
    in_segment = RawSQL(_IN_SEGMENT, [], output_field=BooleanField())  # noqa: S611 - a parameter
    query = rows.query.chain()
    query.clear_limits()
    query.add_q(containing(text) & Q(in_segment))
    query.set_limits(high=limit)
    sql, params = query.sql_with_params()
    last = f"{_NEWEST} >> {SEGMENT_BITS}"
    if ascending:
        bounds = {"start": "0" if position is None else "%s", "end": last, "step": "1"}
    else:
        bounds = {"start": last if position is None else f"least(%s, {last})"}
        bounds |= {"end": "0", "step": "-1"}
    # A caller may name any position; there are segments only where there can be rows.
    given = () if position is None else (min(max(position, 0), MAX_ID) >> SEGMENT_BITS,)
    every = 1 + (_folded_bytes(text) - MIN_BYTES) // MAX_TRIGRAMS
    return _BY_SEGMENT.format(rows=sql, **bounds), (text, every, *given, *params, limit)


def _folded_bytes(text: str) -> int:
    """The length of a text in capitals at least, whether or not PostgreSQL agrees on each."""
    return min(len(text.encode()), len(text.upper().encode()))
