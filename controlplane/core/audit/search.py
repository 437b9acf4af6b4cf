"""Text search in the audit trail: candidates from a trigram index, then an exact comparison.

The trail is searched in segments of 16,384 rows, in page order, until the page is full. So both
very common and absent texts are fast, and results need no sorting. The migration
`0015_audit_trigrams` defines the indexed trigrams.
"""

from typing import Any

from django.db.models import BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from controlplane.core.audit.models import AuditEntry

PLACES = ("actor_name", "action", "target", "reason")
MIN_BYTES = 3
"""Shortest text, in upper case, that has a trigram."""
MAX_SCANNED = 20_000
"""Newest rows that are scanned for a text without a trigram."""
MAX_TRIGRAMS = 16
"""Most trigrams looked up for one text, evenly spread: each adds the same cost."""
SEGMENT_BITS = 14

_IN_SEGMENT = rf"""
    "core_auditentry"."id" = ANY (ARRAY (
        SELECT e.id FROM core_auditentry e
        WHERE core_audit_trigrams(
            e.id >> {SEGMENT_BITS},
            e.actor_name || E'\n' || e.action || E'\n' || e.target || E'\n' || e.reason
        ) @> segment.trigrams
    ))
"""  # noqa: S608 - a constant of this module
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
    """Return True if the text has no trigram, so that only the newest rows can be searched."""
    return _folded_bytes(text) < MIN_BYTES


def containing(text: str) -> Q:
    """Match rows that contain the text, ignoring case. Without the index this reads all rows."""
    found = Q()
    for place in PLACES:
        found |= Q(**{f"{place}__icontains": text})
    return found


def among_newest() -> Q:
    """Match the newest `MAX_SCANNED` rows, for a text that :func:`is_short`."""
    return Q(id__gt=RawSQL(f"{_NEWEST} - %s", [MAX_SCANNED]))  # noqa: S611 - no user input


def by_segment(
    rows: QuerySet[AuditEntry, Any],
    text: str,
    *,
    ascending: bool,
    position: int | None,
    limit: int,
) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL for the first `limit` of `rows` that contain `text`, and its parameters.

    `rows` are ordered by id (`ascending` or descending), cut to `limit`, and begin at `position`
    if given. `text` must not be :func:`is_short`.
    """
    in_segment = RawSQL(_IN_SEGMENT, [], output_field=BooleanField())  # noqa: S611 - a parameter
    query = rows.query.chain()
    query.clear_limits()
    query.add_q(containing(text) & Q(in_segment))
    query.set_limits(high=limit)
    sql, params = query.sql_with_params()
    first = f"{_NEWEST} >> {SEGMENT_BITS}" if position is None else f"%s::bigint >> {SEGMENT_BITS}"
    if ascending:
        bounds = {"start": "0" if position is None else first, "step": "1"}
        bounds["end"] = f"{_NEWEST} >> {SEGMENT_BITS}"
    else:
        bounds = {"start": first, "end": "0", "step": "-1"}
    given = () if position is None else (position,)
    every = 1 + (_folded_bytes(text) - MIN_BYTES) // MAX_TRIGRAMS
    return _BY_SEGMENT.format(rows=sql, **bounds), (text, every, *given, *params, limit)


def _folded_bytes(text: str) -> int:
    """Return a lower bound of the text's length in upper case, also by PostgreSQL's rules."""
    return min(len(text.encode()), len(text.upper().encode()))
