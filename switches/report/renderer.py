"""Report content for templates: typed cells and laid-out charts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from controlplane.core import durations

WIDTH, HEIGHT = 320, 132
LEFT, RIGHT, TOP, BOTTOM = 4, 4, 20, 22
MAX_BAR_WIDTH = 34.0

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
LONG_CELL = 30
TONES = {
    "bad": ("overdue", "To settle"),
    "warn": ("warning", "To look at"),
    "unknown": ("unknown", "Not known"),
    "good": ("released", "Fine"),
}
MARKS = {"bad": "!!", "warn": " !", "unknown": " ?", "good": "  "}


@dataclass(frozen=True)
class Bar:
    """A bar with its label and formatted value; numbers are in the drawing's units."""

    label: str
    value: str
    x: float
    y: float
    width: float
    height: float
    middle: float


@dataclass(frozen=True)
class BarChart:
    width: int
    height: int
    ground: int
    label_y: int
    bars: tuple[Bar, ...]


def layout_bars(values: list[tuple[str, float]]) -> BarChart:
    ground = HEIGHT - BOTTOM
    most = max((value for _, value in values), default=0.0)
    room = (WIDTH - LEFT - RIGHT) / max(1, len(values))
    width = min(MAX_BAR_WIDTH, room * 0.62)
    bars = []
    for number, (label, value) in enumerate(values):
        height = (ground - TOP) * max(0.0, value) / most if most > 0 else 0.0
        middle = LEFT + room * (number + 0.5)
        bars.append(
            Bar(
                label=label,
                value=format_value(value),
                x=round(middle - width / 2, 1),
                y=round(ground - height, 1),
                width=round(width, 1),
                height=round(height, 1),
                middle=round(middle, 1),
            )
        )
    return BarChart(WIDTH, HEIGHT, ground, HEIGHT - 6, tuple(bars))


def format_value(value: float) -> str:
    """Return a value as text with few decimals: `0`, `0.4`, `12`, `1,240`."""
    if value == int(value) or abs(value) >= 100:
        return f"{round(value):,}"
    return "< 0.1" if 0 < value < 0.1 else f"{value:.1f}"


@dataclass(frozen=True)
class ReportCell:
    """A table cell of `kind` `number`, `moment`, `text` or `empty`; `at` is set for a moment."""

    label: str
    kind: str
    text: str
    at: datetime | None = None

    @property
    def is_long(self) -> bool:
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
    drawing: BarChart


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
        return self.tone == "good" and not self.rows and not self.charts


def build_sections(content: Mapping[str, Any]) -> list[Section]:
    return [_build_section(section) for section in content["sections"]]


def build_cell(column: str, value: Any) -> ReportCell:
    label = format_heading(column)
    if value is None or value == "":
        return ReportCell(label, "empty", "–")
    if isinstance(value, bool):
        return ReportCell(label, "text", "yes" if value else "no")
    if isinstance(value, int | float):
        if column.endswith("_seconds"):
            return ReportCell(label, "number", durations.format_readable(timedelta(seconds=value)))
        return ReportCell(label, "number", format_value(float(value)))
    if isinstance(value, list):
        return ReportCell(label, "text", ", ".join(map(str, value)))
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return ReportCell(label, "moment", value, datetime.fromisoformat(value))
    return ReportCell(label, "text", str(value))


def format_heading(column: str) -> str:
    """Return a column's heading without its unit: `engaged_at` → `Engaged`."""
    words = re.sub(r"_(at|seconds)$", "", column).replace("_", " ")
    return words[:1].upper() + words[1:]


def _build_section(content: Mapping[str, Any]) -> Section:
    icon, word = TONES[content["tone"]]
    rows = tuple(
        TableRow(
            tuple(build_cell(name, row["cells"][name]) for name in content["columns"]), row["path"]
        )
        for row in content["rows"]
    )
    kinds = {c.label: c.kind for row in rows for c in row.cells if c.kind != "empty"}
    return Section(
        slug=content["slug"],
        title=content["title"],
        summary=content["summary"],
        tone=content["tone"],
        icon=icon,
        word=word,
        heads=tuple(
            ReportCell(format_heading(name), kinds.get(format_heading(name), "text"), "")
            for name in content["columns"]
        ),
        rows=rows,
        total=content["total"],
        more=max(0, content["total"] - len(rows)),
        charts=tuple(
            ReportChart(
                chart["title"],
                chart["unit"],
                chart["alt"],
                layout_bars([(label, value) for label, value in chart["bars"]]),
            )
            for chart in content["charts"]
        ),
        unread=content["unread"],
    )


def render_lines(content: Mapping[str, Any], zone: tzinfo, public_url: str) -> Iterator[str]:
    state = "final" if content["final"] else "so far"
    yield f"Weekly report {content['week']} of {content['environment']}, {state}"
    since, until = (datetime.fromisoformat(content[key]) for key in ("starts_at", "ends_at"))
    yield f"{_format_time(since, zone)} to {_format_time(until, zone)}, {content['time_zone']}"
    for section in build_sections(content):
        yield ""
        yield f"{MARKS[section.tone]} {section.title}: {section.summary}"
        yield from _render_rows(section, zone, public_url)


def _render_rows(section: Section, zone: tzinfo, public_url: str) -> Iterator[str]:
    for row in section.rows:
        yield f"     {_render_cells(row, zone)}"
        yield f"       {public_url}{row.path}"
    if section.more:
        yield f"     and {section.more:,} more"
    for chart in section.charts:
        bars = "  ".join(f"{bar.label} {bar.value}" for bar in chart.drawing.bars)
        yield f"     {chart.title} ({chart.unit}): {bars}"


def _render_cells(row: TableRow, zone: tzinfo) -> str:
    first, *rest = row.cells
    cells = [f"{c.label}: {_render_cell(c, zone)}" for c in rest if c.kind != "empty"]
    return " · ".join([_render_cell(first, zone), *cells])


def _render_cell(build_cell: Any, zone: tzinfo) -> str:
    return _format_time(build_cell.at, zone) if build_cell.at else " ".join(build_cell.text.split())


def _format_time(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M %Z}"
