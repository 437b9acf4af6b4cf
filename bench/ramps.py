"""What a thousand ramps cost: one look at all of them, fifty that move, hundreds that go back.

The tick runs in this process, at moments a second apart, against this run's own PostgreSQL; nobody
else runs ticks. Its core is what counts: CPU time of this process, and beside it that of the
PostgreSQL process that serves it.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median

from django.db import connection

from bench import ramping
from bench.servers import cpu_seconds

LOOKS = 15
RENEWED_EVERY = 5
ADVANCES = 50
ROUNDS = 5
MAX_TICKS = 100


@dataclass(frozen=True)
class Cost:
    """Of ticks, in seconds; `database` is None where PostgreSQL runs elsewhere."""

    moved: int
    cpu: float
    database: float | None
    wall: float


@dataclass(frozen=True)
class Ramping:
    """Medians of ticks in which `count` ramps dwell, and in which `ready` of them are to move; and
    what it took until the last of those whose gate fails was at nothing, in `ticks` ticks."""

    count: int
    ready: int
    dwelling: Cost
    advancing: Cost
    going_back: Cost
    ticks: int


def measure(count: int) -> Ramping:
    """With `count` ramps, a third of which fail in the end."""
    from controlplane.core.clock import db_now

    ramping.tell_somebody(db_now())
    began = db_now()
    ramps = ramping.lay(count, began)
    moments = _moments(began)
    try:
        dwelling = _dwell(moments)
        ready = iter(sorted(ramps["none"] + ramps["external"]))
        each = min(ADVANCES, count // (2 * ROUNDS))
        advancing = [_advance([next(ready) for _ in range(each)], moments) for _ in range(ROUNDS)]
        going_back = list(_go_back(ramps["external"], moments))
    finally:
        ramping.clear()
    back = _together(going_back)
    return Ramping(count, each, dwelling, _middle(advancing), back, len(going_back))


def _moments(began: datetime) -> Iterator[datetime]:
    """A second apart, or as long as whatever happened at the last one took."""
    now = began
    for _ in range(MAX_TICKS):
        since = time.monotonic()
        now += timedelta(seconds=1)
        yield now
        now += timedelta(seconds=time.monotonic() - since)
    raise SystemExit(f"bench: ramps have not come to where they go within {MAX_TICKS} ticks")


def _dwell(moments: Iterator[datetime]) -> Cost:
    seen = []
    for number in range(LOOKS):
        now = next(moments)
        if number % RENEWED_EVERY == 0:
            ramping.report("ok", now)
        seen.append(_tick(now))
    _expect(sum(one.moved for one in seen), 0, "a ramp moved before its time")
    return _middle(seen[RENEWED_EVERY:])  # The first ones warm up and keep every first verdict.


def _advance(ready: list[int], moments: Iterator[datetime]) -> Cost:
    now = next(moments)
    ramping.report("ok", now)
    ramping.due(ready, now)
    seen = _tick(now)
    while _tick(next(moments)).moved:
        pass  # On a busy machine some are left over: a tick has its limit.
    return seen


def _go_back(failing: list[int], moments: Iterator[datetime]) -> Iterator[Cost]:
    from switches.models import Episode

    now = next(moments)
    ramping.report("fail", now)
    left = Episode.objects.filter(ramps__in=failing, allow_percent__gt=0)
    while left.exists():
        yield _tick(now)
        now = next(moments)


def _tick(now: datetime) -> Cost:
    from controlplane.core.jobs import engine

    database = database_cpu()
    before = database()
    wall, cpu = time.monotonic(), time.process_time()
    moved = engine.turn("ramps.turn", now)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    return Cost(moved, cpu, None if before is None else (database() or before) - before, wall)


def database_cpu() -> Callable[[], float | None]:
    """Tells the CPU seconds so far of the PostgreSQL process behind this connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    try:
        is_here = b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        is_here = False
    return lambda: cpu_seconds(pid) if is_here else None


def _middle(costs: list[Cost]) -> Cost:
    known = [one.database for one in costs if one.database is not None]
    return Cost(
        min(one.moved for one in costs),
        median(one.cpu for one in costs),
        median(known) if known else None,
        median(one.wall for one in costs),
    )


def _together(costs: list[Cost]) -> Cost:
    known = [one.database for one in costs if one.database is not None]
    return Cost(
        sum(one.moved for one in costs),
        sum(one.cpu for one in costs),
        sum(known) if known else None,
        sum(one.wall for one in costs),
    )


def _expect(found: int, wanted: int, otherwise: str) -> None:
    if found != wanted:
        raise SystemExit(f"bench: {otherwise}: {found}, not {wanted}")
