"""Ticks: periodic functions, run by Celery, that find their work in PostgreSQL.

Celery's beat and workers run them; the watchdog runs late ones. A tick may run in two processes at
once. The table `core_tick` has the last run of each tick.
"""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import DatabaseError, InterfaceError, connection
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils.module_loading import autodiscover_modules

from controlplane.core import threads
from controlplane.core.clock import db_now
from controlplane.core.database_errors import is_away
from controlplane.core.process_models import Tick as TickRow

log = structlog.get_logger(__name__)

TickFunction = Callable[[datetime], int]
Pending = Callable[[Any], Iterable[QuerySet[Any]]]


@dataclass(frozen=True)
class RegisteredTick:
    """A function called every `seconds` with the database's time; it returns its amount of work.

    Workers of the Celery queue `queue` run it. `pending` takes the current time as a query
    expression and returns querysets: while all of them are empty, the tick has no work.
    """

    name: str
    seconds: int
    queue: str
    function: TickFunction
    pending: Pending | None = None


@dataclass(frozen=True)
class TickStatus:
    """A tick's state: the seconds by which its run is late, 0 if on time, and who ran it last."""

    tick: RegisteredTick
    late_seconds: float
    ran_by: str


_registered: dict[str, RegisteredTick] = {}


def tick(
    name: str, *, seconds: int, queue: str, pending: Pending | None = None
) -> Callable[[TickFunction], TickFunction]:
    """Return a decorator that registers a function as the tick `name`."""

    def register(function: TickFunction) -> TickFunction:
        _registered[name] = RegisteredTick(name, seconds, queue, function, pending)
        return function

    return register


def list_ticks() -> Mapping[str, RegisteredTick]:
    """Return the ticks of all installed apps, by name."""
    _discover()
    return _registered


def run(name: str, ran_by: str) -> int:
    """Run one tick now, record the run, and return the count of its work.

    An error of the tick is logged. A run without a reachable database isn't recorded.
    """
    tick = list_ticks()[name]
    try:
        done = _call_tick(tick)
        record_runs([name], ran_by)
    except (DatabaseError, InterfaceError) as error:
        if not is_away(error):
            raise
        # Only a warning, because the readiness probe reports an unreachable database.
        log.warning("tick.postponed", tick=name, error=str(error).strip())
        threads.close_connection()
        return 0
    return done


def list_statuses() -> list[TickStatus]:
    """Return the status of each tick, by the database's clock; infinitely late if it never ran."""
    rows = {row.name: row for row in TickRow.objects.all()}
    now = db_now()
    return [_tick_status(tick, rows.get(tick.name), now) for tick in list_ticks().values()]


def find_idle(names: Collection[str]) -> set[str]:
    """Return those of the named ticks that have no work now, by their `pending`; one query."""
    checked_names = sorted(name for name in names if list_ticks()[name].pending is not None)
    if not checked_names:
        return set()
    parts = [_has_pending(name) for name in checked_names]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(sql for sql, _ in parts)}",
            [value for _, values in parts for value in values],
        )
        found = cursor.fetchone() or ()
    return {name for name, has_work in zip(checked_names, found, strict=True) if not has_work}


@functools.lru_cache(maxsize=256)
def _has_pending(name: str) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition that a tick has work, and its parameters."""
    pending = list_ticks()[name].pending
    querysets = pending(Now()) if pending else ()
    compiled = [rows.values("pk").query.sql_with_params() for rows in querysets]
    sql = " OR ".join(f"EXISTS ({sql})" for sql, _ in compiled)
    return f"({sql})", tuple(value for _, values in compiled for value in values)


@functools.cache
def _discover() -> None:
    autodiscover_modules("tasks")


def _call_tick(tick: RegisteredTick) -> int:
    try:
        return tick.function(db_now())
    except Exception as error:
        if is_away(error):
            raise
        log.exception("tick.failed", tick=tick.name)
        return 0


def _tick_status(tick: RegisteredTick, row: TickRow | None, now: datetime) -> TickStatus:
    if row is None:
        return TickStatus(tick, float("inf"), "")
    if row.ran_at > now + timedelta(seconds=tick.seconds):  # The clock was set back since.
        return TickStatus(tick, float("inf"), row.ran_by)
    late = now - row.ran_at - timedelta(seconds=tick.seconds)
    return TickStatus(tick, max(0.0, late.total_seconds()), row.ran_by)


def record_runs(names: Collection[str], ran_by: str) -> None:
    """Record that the process `ran_by` has just run these ticks."""
    if not names:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO core_tick (name, ran_at, ran_by)"
            " SELECT name, clock_timestamp(), %s FROM unnest(%s::text[]) AS name ORDER BY name"
            " ON CONFLICT (name) DO UPDATE SET ran_at = excluded.ran_at, ran_by = excluded.ran_by",
            [ran_by, sorted(names)],
        )
