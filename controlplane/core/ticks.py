"""Ticks: periodic functions that claim their work in PostgreSQL.

Celery's beat and workers run them; the watchdog runs late ones. Any tick may run twice at once,
anywhere. Its last run and the process that ran it are in `core_tick`.
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
class Tick:
    """A function called every `seconds` with the database's time; it returns a count of its work.

    `queue` names the workers that run it. `pending` takes the database's time as a query expression
    and returns querysets: while all of them are empty, the tick has no work.
    """

    name: str
    seconds: int
    queue: str
    function: TickFunction
    pending: Pending | None = None


@dataclass(frozen=True)
class Turn:
    """A tick's status: seconds it is late (0 if on time), and the process that last ran it."""

    tick: Tick
    late_seconds: float
    ran_by: str


_registered: dict[str, Tick] = {}


def tick(
    name: str, *, seconds: int, queue: str, pending: Pending | None = None
) -> Callable[[TickFunction], TickFunction]:
    """Register a function as the tick `name`; done in the `tasks` module of its app."""

    def register(function: TickFunction) -> TickFunction:
        _registered[name] = Tick(name, seconds, queue, function, pending)
        return function

    return register


def registered() -> Mapping[str, Tick]:
    """Return the ticks of all installed apps, by name."""
    _discover()
    return _registered


def run(name: str, ran_by: str) -> int:
    """Run one tick now, record the run, and return the count of its work.

    Errors are logged and suppressed: the run counts as done, the next one tries again.
    """
    tick = registered()[name]
    try:
        done = _take_turn(tick)
        note([name], ran_by)
    except (DatabaseError, InterfaceError) as error:
        if not is_away(error):
            raise
        # The readiness probe reports a missing database; nobody has to act on each second of it.
        log.warning("tick.postponed", tick=name, error=str(error).strip())
        threads.forget_connection()
        return 0
    return done


def turns() -> list[Turn]:
    """Return each tick's status by the database's clock; one that never ran is infinitely late."""
    rows = {row.name: row for row in TickRow.objects.all()}
    now = db_now()
    return [_turn(tick, rows.get(tick.name), now) for tick in registered().values()]


def without_work(names: Collection[str]) -> set[str]:
    """Return those of `names` that have no work at the moment, by one query.

    A tick without `pending` always has work.
    """
    asked = sorted(name for name in names if registered()[name].pending is not None)
    if not asked:
        return set()
    parts = [_has_pending(name) for name in asked]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(sql for sql, _ in parts)}",
            [value for _, values in parts for value in values],
        )
        found = cursor.fetchone() or ()
    return {name for name, has_work in zip(asked, found, strict=True) if not has_work}


@functools.lru_cache(maxsize=256)
def _has_pending(name: str) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL condition that a tick has work, and its parameters."""
    pending = registered()[name].pending
    querysets = pending(Now()) if pending else ()
    compiled = [rows.values("pk").query.sql_with_params() for rows in querysets]
    sql = " OR ".join(f"EXISTS ({sql})" for sql, _ in compiled)
    return f"({sql})", tuple(value for _, values in compiled for value in values)


@functools.cache
def _discover() -> None:
    autodiscover_modules("tasks")


def _take_turn(tick: Tick) -> int:
    try:
        return tick.function(db_now())
    except Exception as error:
        if is_away(error):
            raise
        log.exception("tick.failed", tick=tick.name)
        return 0


def _turn(tick: Tick, row: TickRow | None, now: datetime) -> Turn:
    if row is None:
        return Turn(tick, float("inf"), "")
    if row.ran_at > now + timedelta(seconds=tick.seconds):  # The clock was set back since.
        return Turn(tick, float("inf"), row.ran_by)
    late = now - row.ran_at - timedelta(seconds=tick.seconds)
    return Turn(tick, max(0.0, late.total_seconds()), row.ran_by)


def note(names: Collection[str], ran_by: str) -> None:
    """Record that these ticks had their turn just now."""
    if not names:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO core_tick (name, ran_at, ran_by)"
            " SELECT name, clock_timestamp(), %s FROM unnest(%s::text[]) AS name ORDER BY name"
            " ON CONFLICT (name) DO UPDATE SET ran_at = excluded.ran_at, ran_by = excluded.ran_by",
            [ran_by, sorted(names)],
        )
