"""Measurement of periodic tasks: CPU time of this process and of its PostgreSQL, and wall time."""

import gc
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.db import connection

from .servers import cpu_seconds


@dataclass(frozen=True)
class TickCost:
    """The seconds that one run of a periodic task took, and the number of rows it moved.

    `database` is PostgreSQL's CPU time, None if it runs on another machine.
    """

    moved: int
    cpu: float
    database: float | None
    wall: float


def measure_tick(run: Callable[[], int]) -> TickCost:
    """Run a periodic task and return its cost; `run` returns the number of rows that it moved."""
    pid = _find_database_process()
    gc.collect()
    before = None if pid is None else cpu_seconds(pid)
    wall, cpu = time.monotonic(), time.process_time()
    moved = run()
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    return TickCost(moved, cpu, None if before is None else cpu_seconds(pid) - before, wall)


def combine_costs(
    costs: Sequence[TickCost],
    combine: Callable[[Iterable[float]], float],
    moved: Callable[[Iterable[int]], int] = min,
) -> TickCost:
    """Return a cost whose times are those of `costs`, combined by a function such as the median."""
    known = [cost.database for cost in costs if cost.database is not None]
    return TickCost(
        moved(cost.moved for cost in costs),
        combine(cost.cpu for cost in costs),
        combine(known) if known else None,
        combine(cost.wall for cost in costs),
    )


def _find_database_process() -> int | None:
    """Return the id of this connection's PostgreSQL process, None if it runs elsewhere."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    try:
        return pid if b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes() else None
    except OSError:
        return None
