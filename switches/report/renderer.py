"""Report content for templates: typed cells and laid-out charts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from controlplane.core import durations

WIDTH, HEIGHT = 320, 132
LEFT, RIGHT, TOP, BOTTOM = 4, 4, 20, 22
MAX_BAR_WIDTH = 34.0
MAX_LABEL_LENGTH = 10

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
LONG_CELL = 30
TONES = {
    "bad": ("overdue", "Action needed"),
    "warn": ("warning", "Review"),
    "unknown": ("unknown", "Unknown"),
    "good": ("released", "No action"),
}
LOOKS = {"bad": "engaged", "warn": "pending", "unknown": "quiet", "good": "released"}
"""The state whose color a section has, by tone."""
MARKS = {"bad": "!!", "warn": " !", "unknown": " ?", "good": "  "}


def layout_bars(values: Sequence[tuple[str, float | None]]) -> dict[str, Any]:
    """Return the size and the bars of a bar chart, in SVG units.

    A bar without a value (None) has an empty text and no height. `fits` is False if labels are too
    long to stand below their bars.
    """
    ground = HEIGHT - BOTTOM
    max_value = max((value for _, value in values if value is not None), default=0.0)
    slot = (WIDTH - LEFT - RIGHT) / max(1, len(values))
    width = min(MAX_BAR_WIDTH, slot * 0.62)
    bars = []
    for number, (label, value) in enumerate(values):
        height = (ground - TOP) * max(0.0, value or 0.0) / max_value if max_value > 0 else 0.0
        middle = LEFT + slot * (number + 0.5)
        bars.append(
            {
                "label": label,
                "value": "" if value is None else format_value(value),
                "x": round(middle - width / 2, 1),
                "y": round(ground - height, 1),
                "width": round(width, 1),
                "height": round(height, 1),
                "middle": round(middle, 1),
            }
        )
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "ground": ground,
        "label_y": HEIGHT - 6,
        "bars": bars,
        "fits": all(len(label) <= MAX_LABEL_LENGTH for label, _ in values),
    }


def format_value(value: float) -> str:
    """Return a value as text with few decimals: `0`, `0.4`, `12`, `1,240`."""
    if value == int(value) or abs(value) >= 100:
        return f"{round(value):,}"
    return "< 0.1" if 0 < value < 0.1 else f"{value:.1f}"


@dataclass(frozen=True)
class ReportCell:
    """A table cell; `kind` is `number`, `moment`, `text` or `empty`, and `at` a moment's time."""

    label: str
    kind: str
    text: str
    at: datetime | None = None

    @property
    def is_long(self) -> bool:
        return self.at is None and len(self.text) > LONG_CELL


def build_sections(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a report's sections for templates, with icons, typed cells and chart layouts."""
    return [_build_section(section) for section in content["sections"]]


def build_cell(column: str, label: str, value: Any) -> ReportCell:
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


def _build_section(content: Mapping[str, Any]) -> dict[str, Any]:
    icon, word = TONES[content["tone"]]
    headings = {name: format_heading(name) for name in content["columns"]}
    rows = [
        {
            "cells": [build_cell(name, headings[name], row["cells"][name]) for name in headings],
            "path": row["path"],
        }
        for row in content["rows"]
    ]
    kinds = {c.label: c.kind for row in rows for c in row["cells"] if c.kind != "empty"}
    charts = [{**chart, "drawing": layout_bars(chart["bars"])} for chart in content["charts"]]
    return {
        **content,
        "icon": icon,
        "look": LOOKS[content["tone"]],
        "word": word,
        "heads": [
            ReportCell(heading, kinds.get(heading, "text"), "") for heading in headings.values()
        ],
        "rows": rows,
        "headline": content.get("headline") or f"{content['title']}: {content['total']:,}",
        "more": max(0, content["total"] - len(rows)),
        "charts": charts,
        "is_quiet": content["tone"] == "good" and not rows and not charts,
    }


def render_lines(content: Mapping[str, Any], zone: tzinfo, public_url: str) -> Iterator[str]:
    """Yield the lines of a report as plain text, with times in `zone`."""
    state = "final" if content["final"] else "so far"
    team = content.get("team", {}).get("name")
    whose = f" of {team}, only what it owns, in" if team else " of"
    yield f"Weekly report {content['week']}{whose} {content['environment']}, {state}"
    since, until = (datetime.fromisoformat(content[key]) for key in ("starts_at", "ends_at"))
    yield f"{format_time(since, zone)} to {format_time(until, zone)}, {content['time_zone']}"
    for section in build_sections(content):
        yield ""
        yield f"{MARKS[section['tone']]} {section['title']}: {section['summary']}"
        for row in section["rows"]:
            first, *rest = row["cells"]
            cells = [f"{c.label}: {_render_cell(c, zone)}" for c in rest if c.kind != "empty"]
            yield f"     {' · '.join([_render_cell(first, zone), *cells])}"
            yield f"       {public_url}{row['path']}"
        if section["more"]:
            yield f"     and {section['more']:,} more"
        for chart in section["charts"]:
            bars = "  ".join(
                f"{bar['label']} {bar['value']}" for bar in chart["drawing"]["bars"] if bar["value"]
            )
            yield f"     {chart['title']} ({chart['unit']}): {bars}"


def _render_cell(cell: ReportCell, zone: tzinfo) -> str:
    return format_time(cell.at, zone) if cell.at else " ".join(cell.text.split())


def format_time(moment: datetime, zone: tzinfo) -> str:
    """Return a time in `zone`, such as `2026-11-23 00:00 UTC`."""
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M %Z}"
