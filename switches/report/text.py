"""Plain-text rendering of reports for the command line."""

from collections.abc import Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any

from switches.report.screen import Section, TableRow, build_sections

MARKS = {"bad": "!!", "warn": " !", "unknown": " ?", "good": "  "}


def lines_of(content: Mapping[str, Any], zone: tzinfo, public_url: str) -> Iterator[str]:
    """Yield the lines of all sections, with times in `zone` and absolute URLs."""
    state = "final" if content["final"] else "so far"
    yield f"Weekly report {content['week']} of {content['environment']}, {state}"
    since, until = (datetime.fromisoformat(content[key]) for key in ("starts_at", "ends_at"))
    yield f"{_clock(since, zone)} to {_clock(until, zone)}, {content['time_zone']}"
    for section in build_sections(content):
        yield ""
        yield f"{MARKS[section.tone]} {section.title}: {section.summary}"
        yield from _rows(section, zone, public_url)


def _rows(section: Section, zone: tzinfo, public_url: str) -> Iterator[str]:
    for row in section.rows:
        yield f"     {_cells(row, zone)}"
        yield f"       {public_url}{row.path}"
    if section.more:
        yield f"     and {section.more:,} more"
    for chart in section.charts:
        told = "  ".join(f"{bar.label} {bar.value}" for bar in chart.drawing.bars)
        yield f"     {chart.title} ({chart.unit}): {told}"


def _cells(row: TableRow, zone: tzinfo) -> str:
    first, *rest = row.cells
    told = [f"{c.label}: {_text(c, zone)}" for c in rest if c.kind != "empty"]
    return " · ".join([_text(first, zone), *told])


def _text(cell: Any, zone: tzinfo) -> str:
    return _clock(cell.at, zone) if cell.at else " ".join(cell.text.split())


def _clock(moment: datetime, zone: tzinfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M %Z}"
