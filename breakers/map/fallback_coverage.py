"""The fallback matrix: what each dependency does when its callee fails, gaps first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import connection

from breakers.models import Dependency, Service
from breakers.models.registry import Criticality

PAGE_SIZE = 50
HEARD_LATELY = timedelta(minutes=5)


@dataclass(frozen=True)
class CoverageGap:
    """Something that a dependency lacks; `word` on its row, `title` in the filter."""

    name: str
    word: str
    title: str


GAPS: Sequence[CoverageGap] = (
    CoverageGap("breaker", "no breaker", "No breaker"),
    CoverageGap("fallback", "no fallback", "No fallback"),
    CoverageGap("timeout", "no timeout", "No timeout"),
    CoverageGap("runbook", "no runbook", "No runbook"),
)
BY_NAME: Mapping[str, CoverageGap] = {gap.name: gap for gap in GAPS}

# A gap is a column that is true. What nobody has registered has no policy at all; a breaker is
# there if the policy names one and does not say that there is none, or if an instance reports one.
_JUDGED = """
    WITH judged AS (
        SELECT d.id, d.caller, d.callee, d.owner, d.criticality,
            d.criticality IN ('critical', 'high')
                AND jsonb_typeof(d.document -> 'breaker') IS DISTINCT FROM 'object'
                AND NOT EXISTS (
                    SELECT FROM breakers_breakerstate s
                    JOIN core_instance i ON i.id = s.instance AND i.boot = s.boot
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
        FROM judged WHERE true {narrowed}
        ORDER BY breaker DESC, (fallback::int + timeout::int) DESC, runbook DESC,
                 CASE criticality WHEN 'critical' THEN 0 WHEN 'high' THEN 1
                      WHEN 'medium' THEN 2 ELSE 3 END,
                 caller, callee
        LIMIT %(most)s OFFSET %(start)s)
    FROM counted
"""


@dataclass(frozen=True)
class CoverageFilter:
    """Filters of the matrix: the name of a gap, or `any`; empty means all."""

    gap: str = ""
    criticality: str = ""
    q: str = ""
    page: int = 1

    @property
    def narrowed(self) -> bool:
        return bool(self.gap or self.criticality or self.q)


@dataclass(frozen=True)
class CoverageRow:
    """A dependency, what of it is missing, and its callee where that is registered."""

    dependency: Dependency
    gaps: Sequence[CoverageGap]
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
    """A page of rows; `counts` are how many lack what, by the gap's name, and `any`."""

    rows: Sequence[CoverageRow]
    more: bool
    counts: Mapping[str, int]
    known: int

    @property
    def covered(self) -> int:
        return self.known - self.counts["any"]


def parse_filter(given: Any) -> CoverageFilter:
    """Read the filters of a URL; what makes no sense there narrows nothing."""
    gap, criticality = given.get("gap", ""), given.get("criticality", "")
    page = given.get("page", "")
    return CoverageFilter(
        gap=gap if gap in BY_NAME or gap == "any" else "",
        criticality=criticality if criticality in Criticality.values else "",
        q=given.get("q", "").replace("\x00", "").strip().lower().replace("→", "->")[:200],
        page=int(page) if page.isascii() and page.isdigit() and 0 < int(page) < 10_000 else 1,
    )


def load_matrix(asked: CoverageFilter, now: datetime) -> CoverageMatrix:
    """Return one page, the most serious gaps first, by three queries."""
    *counts, found = _query(asked, now)
    shown = [_parse_row(text) for text in found[:PAGE_SIZE]]
    known = Dependency.objects.in_bulk([pk for pk, _ in shown])
    callees = Service.objects.in_bulk([one.callee for one in known.values()])
    rows = [
        CoverageRow(known[pk], gaps, callees.get(known[pk].callee))
        for pk, gaps in shown
        if pk in known
    ]
    names = [*BY_NAME, "any"]
    return CoverageMatrix(
        rows=rows,
        more=len(found) > PAGE_SIZE,
        counts=dict(zip(names, counts, strict=False)),
        known=counts[-1],
    )


def _query(asked: CoverageFilter, now: datetime) -> Any:
    clauses = []
    if asked.gap == "any":
        clauses.append("AND (breaker OR fallback OR timeout OR runbook)")
    elif asked.gap:
        clauses.append(f"AND {asked.gap}")
    if asked.criticality:
        clauses.append("AND criticality = %(criticality)s")
    if asked.q:
        clauses.append("AND position(%(q)s IN caller || '->' || callee || ' ' || lower(owner)) > 0")
    values: dict[str, Any] = {
        "lately": now - HEARD_LATELY,
        "criticality": asked.criticality,
        "q": asked.q.replace(" ", ""),
        "most": PAGE_SIZE + 1,
        "start": (asked.page - 1) * PAGE_SIZE,
    }
    with connection.cursor() as cursor:
        cursor.execute(_JUDGED.format(narrowed=" ".join(clauses)), values)
        return cursor.fetchone()


def _parse_row(text: str) -> tuple[int, list[CoverageGap]]:
    pk, *lacks = orjson.loads(text)
    return pk, [gap for gap, missing in zip(GAPS, lacks, strict=True) if missing]
