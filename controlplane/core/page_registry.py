"""What apps have to say on pages that belong to nobody: attention, the weekly report, the preview.

Each app registers functions in a module named `sections`; the pages ask them all, in order of
`position`, and know none of them by name.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.module_loading import autodiscover_modules


@dataclass(frozen=True)
class Waiting:
    """One thing that waits for a person: what, since when, how bad, and the page to settle it.

    `kind` is a slug (`overdue`, `approval`); `severity` is critical, warning or info; `due_at` is
    when it gets worse by itself, if it does.
    """

    kind: str
    severity: str
    title: str
    detail: str
    path: str
    since: datetime
    due_at: datetime | None = None


@dataclass(frozen=True)
class Chart:
    """A bar for each (label, value), in `unit`; `alt` says it all in a sentence."""

    title: str
    unit: str
    alt: str
    bars: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class ReportRow:
    """One line of a section: cells by column name (plain JSON values), and the page about it."""

    cells: Mapping[str, Any]
    path: str


@dataclass(frozen=True)
class ReportSection:
    """A part of the weekly report. `total` counts all rows, of which `rows` may be the first.

    `tone` is `bad`, `warn`, `unknown` or `good`: whether a reader has to act, or can't tell.
    """

    slug: str
    title: str
    summary: str
    tone: str
    columns: tuple[str, ...] = ()
    rows: tuple[ReportRow, ...] = ()
    total: int = 0
    charts: tuple[Chart, ...] = field(default_factory=tuple)


AttentionSource = Callable[[datetime], Sequence[Waiting]]
"""Everything of one kind that waits at this moment, the worst first, at most a few hundred."""
ReportSource = Callable[[datetime, datetime, datetime], ReportSection]
"""The section for a week from `start` to `end`, as it stands at `now`."""
PreviewSource = Callable[[str, datetime], Mapping[str, Any]]
"""Fields to add to the preview of a switch (its id) before it is engaged."""

Rows = Callable[[Any], QuerySet[Any] | Sequence[QuerySet[Any]]]
"""Return querysets of one table or several; a source has items only if one of them has rows.

It is called once per process, with an expression for the time (`compiled_query.MOMENT`).
"""

_only_if: dict[AttentionSource, Rows] = {}
_attention: list[tuple[int, AttentionSource]] = []
_report: list[tuple[int, ReportSource]] = []
_preview: list[tuple[int, PreviewSource]] = []


def attention(
    position: int, *, only_if: Rows | None = None
) -> Callable[[AttentionSource], AttentionSource]:
    """Register a source of *Needs attention*.

    It is skipped while `only_if` has no rows; one statement checks that for all sources.
    """

    def register(source: AttentionSource) -> AttentionSource:
        _attention.append((position, source))
        if only_if is not None:
            _only_if[source] = only_if
        return source

    return register


def report(position: int) -> Callable[[ReportSource], ReportSource]:
    """Register a section of the weekly report."""

    def register(source: ReportSource) -> ReportSource:
        _report.append((position, source))
        return source

    return register


def preview(position: int) -> Callable[[PreviewSource], PreviewSource]:
    """Register fields of the preview."""

    def register(source: PreviewSource) -> PreviewSource:
        _preview.append((position, source))
        return source

    return register


def attention_sources() -> list[AttentionSource]:
    _discover()
    return [source for _, source in sorted(_attention, key=_position)]


def rows_of(source: AttentionSource) -> Rows | None:
    """Return the `only_if` of an attention source, if it has one."""
    return _only_if.get(source)


def report_sources() -> list[ReportSource]:
    _discover()
    return [source for _, source in sorted(_report, key=_position)]


def preview_sources() -> list[PreviewSource]:
    _discover()
    return [source for _, source in sorted(_preview, key=_position)]


def _position(registered: tuple[int, Any]) -> int:
    return registered[0]


@functools.cache
def _discover() -> None:
    autodiscover_modules("sections", "waiting", "attention")
