"""Report content for templates: typed cells and laid-out charts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controlplane.core import durations
from switches.report import bars

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
LONG_CELL = 30
TONES = {
    "bad": ("overdue", "To settle"),
    "warn": ("warning", "To look at"),
    "unknown": ("unknown", "Not known"),
    "good": ("released", "Fine"),
}


@dataclass(frozen=True)
class ReportCell:
    """A table cell of `kind` `number`, `moment`, `text` or `empty`; `at` is set for a moment."""

    label: str
    kind: str
    text: str
    at: datetime | None = None

    @property
    def is_long(self) -> bool:
        """Return True if the text may wrap over several lines."""
        return self.at is None and len(self.text) > LONG_CELL


@dataclass(frozen=True)
class TableRow:
    cells: tuple[ReportCell, ...]
    path: str


@dataclass(frozen=True)
class ReportChart:
    title: str
    unit: str
    alt: str
    drawing: bars.BarChart


@dataclass(frozen=True)
class Section:
    slug: str
    title: str
    summary: str
    tone: str
    icon: str
    word: str
    heads: tuple[ReportCell, ...]
    rows: tuple[TableRow, ...]
    total: int
    more: int
    charts: tuple[ReportChart, ...]
    unread: bool

    @property
    def is_quiet(self) -> bool:
        """Return True if the section has nothing but a summary."""
        return self.tone == "good" and not self.rows and not self.charts


def build_sections(content: Mapping[str, Any]) -> list[Section]:
    return [_section(section) for section in content["sections"]]


def cell(column: str, value: Any) -> ReportCell:
    """Return a cell by column name and value: `…_at` are times, `…_seconds` durations."""
    label = heading(column)
    if value is None or value == "":
        return ReportCell(label, "empty", "–")
    if isinstance(value, bool):
        return ReportCell(label, "text", "yes" if value else "no")
    if isinstance(value, int | float):
        if column.endswith("_seconds"):
            return ReportCell(label, "number", durations.format_readable(timedelta(seconds=value)))
        return ReportCell(label, "number", bars.plain(float(value)))
    if isinstance(value, list):
        return ReportCell(label, "text", ", ".join(map(str, value)))
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return ReportCell(label, "moment", value, datetime.fromisoformat(value))
    return ReportCell(label, "text", str(value))


def heading(column: str) -> str:
    """Return a column's heading without its unit: `engaged_at` → `Engaged`."""
    words = re.sub(r"_(at|seconds)$", "", column).replace("_", " ")
    return words[:1].upper() + words[1:]


def _section(told: Mapping[str, Any]) -> Section:
    icon, word = TONES[told["tone"]]
    rows = tuple(
        TableRow(tuple(cell(name, row["cells"][name]) for name in told["columns"]), row["path"])
        for row in told["rows"]
    )
    kinds = {c.label: c.kind for row in rows for c in row.cells if c.kind != "empty"}
    return Section(
        slug=told["slug"],
        title=told["title"],
        summary=told["summary"],
        tone=told["tone"],
        icon=icon,
        word=word,
        heads=tuple(
            ReportCell(heading(name), kinds.get(heading(name), "text"), "")
            for name in told["columns"]
        ),
        rows=rows,
        total=told["total"],
        more=max(0, told["total"] - len(rows)),
        charts=tuple(
            ReportChart(
                chart["title"],
                chart["unit"],
                chart["alt"],
                bars.draw([(label, value) for label, value in chart["bars"]]),
            )
            for chart in told["charts"]
        ),
        unread=told["unread"],
    )
