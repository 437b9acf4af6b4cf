"""The fallback matrix: dependencies with the protection they lack, worst gaps first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import compress
from typing import Any

import orjson

from breakers.models import Dependency, Service
from breakers.models.registry import Criticality
from controlplane.core.instances.exports import PRESENT_BOOT
from controlplane.core.sql import fetch_all

PAGE_SIZE = 50
HEARD_LATELY = timedelta(minutes=5)


GAPS = ("breaker", "fallback", "timeout", "runbook")
"""Kinds of protection that a dependency may lack."""

# The columns named after gaps are true where the protection is missing. A dependency has a breaker
# if its policy defines one or an instance reports one.
_JUDGED = f"""
    WITH judged AS (
        SELECT d.id, d.caller, d.callee, d.owner, d.criticality,
            d.criticality IN ('critical', 'high')
                AND jsonb_typeof(d.document -> 'breaker') IS DISTINCT FROM 'object'
                AND NOT EXISTS (
                    SELECT FROM breakers_breakerstate s
                    JOIN {PRESENT_BOOT}
                    WHERE s.dependency_id = d.id AND i.reported_at >= %(lately)s) AS breaker,
            coalesce(d.document -> 'fallback' ->> 'mode', 'none') = 'none' AS fallback,
            jsonb_typeof(d.document -> 'timeout_ms') IS DISTINCT FROM 'number' AS timeout,
            d.runbook_url = '' AND coalesce(s.runbook_url, '') = '' AS runbook
        FROM breakers_dependency d
        LEFT JOIN breakers_service s ON s.slug = d.callee
        WHERE d.removed_at IS NULL
    ), counted AS (
        SELECT count(*) FILTER (WHERE breaker), count(*) FILTER (WHERE fallback),
               count(*) FILTER (WHERE timeout), count(*) FILTER (WHERE runbook),
               count(*) FILTER (WHERE breaker OR fallback OR timeout OR runbook), count(*)
        FROM judged
    )
    SELECT counted.*, ARRAY(
        SELECT jsonb_build_array(id, breaker, fallback, timeout, runbook)::text
        FROM judged WHERE true {{narrowed}}
        ORDER BY breaker DESC, (fallback::int + timeout::int) DESC, runbook DESC,
                 CASE criticality WHEN 'critical' THEN 0 WHEN 'high' THEN 1
                      WHEN 'medium' THEN 2 ELSE 3 END,
                 caller, callee
        LIMIT %(most)s OFFSET %(start)s)
    FROM counted
"""  # noqa: S608


@dataclass(frozen=True)
class CoverageFilter:
    """Filters of the fallback matrix; an empty value does not filter.

    `gap` is the name of a gap, or `any`.
    """

    gap: str = ""
    criticality: str = ""
    q: str = ""
    page: int = 1

    @property
    def narrowed(self) -> bool:
        return bool(self.gap or self.criticality or self.q)


@dataclass(frozen=True)
class CoverageRow:
    """A dependency, the protections it lacks, and its callee, None if that is not registered."""

    dependency: Dependency
    gaps: Sequence[str]
    callee: Service | None

    @property
    def fallback(self) -> dict[str, Any]:
        found = self.dependency.document.get("fallback")
        return found if isinstance(found, dict) else {}

    @property
    def runbook_url(self) -> str:
        return self.dependency.runbook_url or (self.callee.runbook_url if self.callee else "")


@dataclass(frozen=True)
class CoverageMatrix:
    """A page of the fallback matrix.

    `counts` are numbers of dependencies by the name of a gap; the key `any` counts dependencies
    with at least one gap. `known` is the number of all dependencies.
    """

    rows: Sequence[CoverageRow]
    more: bool
    counts: Mapping[str, int]
    known: int

    @property
    def is_protected(self) -> bool:
        """True if every dependency has the protection that it needs; a runbook protects nothing."""
        gaps = [self.counts[gap] for gap in GAPS if gap != "runbook"]
        return self.known > 0 and not any(gaps)


def parse_filter(query: Any) -> CoverageFilter:
    """Parse the filters of the matrix from a URL's query; invalid values are ignored."""
    gap, criticality = query.get("gap", ""), query.get("criticality", "")
    page = query.get("page", "")
    return CoverageFilter(
        gap=gap if gap in (*GAPS, "any") else "",
        criticality=criticality if criticality in Criticality.values else "",
        q=query.get("q", "").replace("\x00", "").strip().lower().replace("→", "->")[:200],
        page=int(page) if page.isascii() and page.isdigit() and 0 < int(page) < 10_000 else 1,
    )


def load_matrix(filters: CoverageFilter, now: datetime) -> CoverageMatrix:
    """Return one page of the fallback matrix, the most serious gaps first. Makes three queries."""
    *counts, found = _query(filters, now)
    shown = [orjson.loads(text) for text in found[:PAGE_SIZE]]
    by_id = Dependency.objects.in_bulk([pk for pk, *_ in shown])
    callees = Service.objects.in_bulk([one.callee for one in by_id.values()])
    rows = [
        CoverageRow(by_id[pk], [*compress(GAPS, lacks)], callees.get(by_id[pk].callee))
        for pk, *lacks in shown
        if pk in by_id
    ]
    names = [*GAPS, "any"]
    return CoverageMatrix(
        rows=rows,
        more=len(found) > PAGE_SIZE,
        counts=dict(zip(names, counts, strict=False)),
        known=counts[-1],
    )


def _query(filters: CoverageFilter, now: datetime) -> Any:
    clauses = []
    if filters.gap == "any":
        clauses.append("AND (breaker OR fallback OR timeout OR runbook)")
    elif filters.gap:
        clauses.append(f"AND {filters.gap}")
    if filters.criticality:
        clauses.append("AND criticality = %(criticality)s")
    if filters.q:
        clauses.append("AND position(%(q)s IN caller || '->' || callee || ' ' || lower(owner)) > 0")
    values: dict[str, Any] = {
        "lately": now - HEARD_LATELY,
        "criticality": filters.criticality,
        "q": filters.q.replace(" ", ""),
        "most": PAGE_SIZE + 1,
        "start": (filters.page - 1) * PAGE_SIZE,
    }
    return fetch_all(_JUDGED.format(narrowed=" ".join(clauses)), values)[0]
