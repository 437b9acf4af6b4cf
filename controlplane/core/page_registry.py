"""Registries through which apps contribute to shared pages.

*Needs attention*, the weekly report and the preview of an engage show the registered items, in
order of `position`. Apps register functions in modules named `attention`, `report_sections` and
`preview_fields`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from controlplane.core.registry import FunctionRegistry, KindRegistry, RegisteredFunction


@dataclass(frozen=True)
class AttentionItem:
    """An item that needs a person's action, and the page to resolve it on.

    `kind` is a slug (`overdue`, `approval`); `severity` is critical, warning or info; `due_at` is
    the time it gets worse without action, if any.
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
    """A bar for each (label, value), in `unit`; `alt` is a text alternative of one sentence."""

    title: str
    unit: str
    alt: str
    bars: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class ReportRow:
    """A row of a section: cells by column name (plain JSON values), and the page about it."""

    cells: Mapping[str, Any]
    path: str


@dataclass(frozen=True)
class ReportSection:
    """A section of the weekly report; `total` counts all rows, `rows` may be the first of them.

    `tone` is `bad` or `warn` if a reader has to act, `unknown` without data, else `good`.
    """

    slug: str
    title: str
    summary: str
    tone: str
    columns: tuple[str, ...] = ()
    rows: tuple[ReportRow, ...] = ()
    total: int = 0
    charts: tuple[Chart, ...] = field(default_factory=tuple)


AttentionReader = Callable[[datetime], Sequence[AttentionItem]]
"""Returns all items of one kind at a moment, the worst first, at most a few hundred."""
ReportBuilder = Callable[[datetime, datetime, datetime], ReportSection]
"""Returns the section for a week from `start` to `end`, as it is at `now`."""
PreviewReader = Callable[[str, datetime], Mapping[str, Any]]
"""Returns fields to add to the preview of a switch (its id) before it is engaged."""

Rows = Callable[[Any], QuerySet[Any] | Sequence[QuerySet[Any]]]
"""Returns querysets of one table or several; a source has items only if one of them has rows.

It is called once per process, with an expression for the time (`compiled_query.MOMENT`). The rows
may be too many, never too few: reading a source in vain costs one query.
"""


@dataclass(frozen=True)
class AttentionSource(RegisteredFunction[AttentionReader]):
    """A source of *Needs attention*, skipped while `only_if` has no rows."""

    only_if: Rows | None = None


ATTENTION_SOURCES = KindRegistry[AttentionSource]("attention", order=lambda source: source.position)
REPORT_SECTIONS = FunctionRegistry[ReportBuilder]("report_sections")
PREVIEW_FIELDS = FunctionRegistry[PreviewReader]("preview_fields")


def attention_source(
    position: int, *, only_if: Rows | None = None
) -> Callable[[AttentionReader], AttentionReader]:
    """Return a decorator that registers a source of *Needs attention*.

    One statement checks `only_if` for all sources.
    """

    def register(read: AttentionReader) -> AttentionReader:
        ATTENTION_SOURCES.register(AttentionSource(read, position, only_if))
        return read

    return register
