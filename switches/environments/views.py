"""The page *Environments*: this installation and its siblings side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, render_live, signed_in

from .sibling_reader import SiblingReading, get_reader
from .state import EnvironmentState, StoppedSwitch, load_state

SILENT_AFTER = timedelta(seconds=30)
MAX_ROWS = 200


@dataclass(frozen=True)
class EnvironmentColumn:
    """One environment; `state` is None if it is unknown, then `problem` says why.

    `url` is "" for this console.
    """

    name: str
    url: str
    state: EnvironmentState | None
    heard_at: datetime | None
    problem: str = ""

    @property
    def is_production(self) -> bool:
        return self.name.lower() == "production"

    @property
    def other_name(self) -> str:
        """The name by which the console calls itself, if it is another one."""
        found = self.state.environment if self.state else self.name
        return "" if found.casefold() == self.name.casefold() else found


@dataclass(frozen=True)
class Cell:
    """A switch in one environment; `switch` is None if it is released there."""

    column: EnvironmentColumn
    switch: StoppedSwitch | None
    is_known: bool


@dataclass(frozen=True)
class Row:
    id: str
    cells: Sequence[Cell]

    @property
    def differs(self) -> bool:
        return len({cell.switch is None for cell in self.cells if cell.is_known}) > 1


@signed_in
@require_GET
def environments_page(request: PersonRequest, template: str) -> HttpResponse:
    """Render `template`: the page, or only its content, which the page polls for changes."""
    now = db_now()
    own = EnvironmentColumn(settings.ENVIRONMENT_NAME, "", load_state(now), now)
    read_at = timezone.now()
    columns = [own]
    columns += [
        build_column(reading, read_at, now) for reading in get_reader(settings.SIBLINGS).read()
    ]
    rows = build_rows(columns)
    context = {
        "now": now,
        "columns": columns,
        "rows": rows[:MAX_ROWS],
        "hidden": len(rows[MAX_ROWS:]),
        "unknown": sum(column.state is None for column in columns),
        "stopped": sum(bool(column.state and column.state.stopped) for column in columns),
    }
    return render_live(request, template, context)


def build_column(reading: SiblingReading, read_at: datetime, now: datetime) -> EnvironmentColumn:
    """Return a sibling's column: its state is unknown if it was last heard over 30 s ago.

    `read_at` is the time of this machine, `now` that of the database, which the page shows.
    """
    age = read_at - reading.heard_at if reading.heard_at else None
    is_current = age is not None and age <= SILENT_AFTER
    problem = reading.problem
    if not is_current and not problem:
        problem = "Still waiting for its response."
    return EnvironmentColumn(
        name=reading.sibling.name,
        url=reading.sibling.url,
        state=reading.state if is_current else None,
        heard_at=None if age is None else now - age,
        problem=problem,
    )


def build_rows(columns: Sequence[EnvironmentColumn]) -> list[Row]:
    """Return the switches that are stopped anywhere, those that differ first."""
    stopped = {
        column.name: {switch.id: switch for switch in column.state.switches}
        for column in columns
        if column.state
    }
    ids = {one for switches in stopped.values() for one in switches}
    rows = [Row(one, [_build_cell(column, stopped, one) for column in columns]) for one in ids]
    return sorted(rows, key=lambda row: (not row.differs, row.id))


def _build_cell(
    column: EnvironmentColumn, stopped: dict[str, dict[str, StoppedSwitch]], switch_id: str
) -> Cell:
    switches, state = stopped.get(column.name, {}), column.state
    switch = switches.get(switch_id)
    is_known = switch is not None or (state is not None and state.stopped == len(switches))
    return Cell(column, switch, is_known)
