"""Text search in the audit trail: a trigram index finds candidates, then texts are compared.

The search reads segments of 16,384 rows in page order until the page is full. So both frequent and
absent texts are fast, and results need no sorting. Migration `0015_audit_trigrams` defines the
index.
"""

from typing import Any

from django.db.models import BigIntegerField, BooleanField, Q, QuerySet
from django.db.models.expressions import RawSQL

from controlplane.core.audit.models import AuditEntry

SEARCHED_FIELDS = ("actor_name", "action", "target", "reason")
MIN_BYTES = 3
"""Minimum length of an uppercase text that has a trigram."""
MAX_SCANNED = 20_000
"""Number of newest rows scanned for a text without trigrams."""
MAX_TRIGRAMS = 16
"""Maximum number of trigrams looked up for a text, spread evenly, because each one costs the same.
"""
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
    """Return True if the text is too short for the index: only the newest rows are searched."""
    return _min_upper_bytes(text) < MIN_BYTES


def match_text(text: str) -> Q:
    """Return the condition for rows that contain the text, ignoring case.

    Without the index, it has to read all rows.
    """
    condition = Q()
    for field in SEARCHED_FIELDS:
        condition |= Q(**{f"{field}__icontains": text})
    return condition


def match_newest() -> Q:
    """Return the condition for the newest `MAX_SCANNED` rows, where short texts are searched."""
    return Q(id__gt=RawSQL(f"{_NEWEST} - %s", [MAX_SCANNED]))  # noqa: S611 - no user input


def build_segment_query(
    rows: QuerySet[AuditEntry, Any], text: str, *, ascending: bool, position: int | None, limit: int
) -> tuple[str, tuple[Any, ...]]:
    """Return SQL and parameters that find the first `limit` of `rows` that contain `text`.

    The SQL searches one segment of rows after the other. `rows` must be ordered by id, `ascending`
    or descending, and begin at `position` (an id) if given. `text` must be long enough for the
    index; see :func:`is_short`.
    """
    in_segment = RawSQL(_IN_SEGMENT, [], output_field=BooleanField())  # noqa: S611 - a parameter
    query = rows.query.chain()
    query.clear_limits()
    query.add_q(match_text(text) & Q(in_segment))
    query.set_limits(high=limit)
    sql, params = query.sql_with_params()
    last = f"{_NEWEST} >> {SEGMENT_BITS}"
    if ascending:
        bounds = {"start": "0" if position is None else "%s", "end": last, "step": "1"}
    else:
        bounds = {"start": last if position is None else f"least(%s, {last})"}
        bounds |= {"end": "0", "step": "-1"}
    # Limit the position, which callers choose, to valid ids.
    start = () if position is None else (min(max(position, 0), MAX_ID) >> SEGMENT_BITS,)
    every = 1 + (_min_upper_bytes(text) - MIN_BYTES) // MAX_TRIGRAMS
    return _BY_SEGMENT.format(rows=sql, **bounds), (text, every, *start, *params, limit)


def _min_upper_bytes(text: str) -> int:
    """Return the least number of bytes that the text can have after PostgreSQL's `upper()`."""
    return min(len(text.encode()), len(text.upper().encode()))
