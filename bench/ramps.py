"""Measures the periodic ramp task with a thousand ramps: most dwell, some advance or roll back.

The task runs in this process, at times one second apart; no other tasks run. CPU time is counted of
this process, and of the PostgreSQL process that serves it.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from . import ramp_fixtures
from .ticks import TickCost, combine_costs, measure_tick

LOOKS = 15
RENEWED_EVERY = 5
ADVANCES = 50
ROUNDS = 5
MAX_TICKS = 100


@dataclass(frozen=True)
class RampCosts:
    """The costs of one run of the ramp task over `count` ramps.

    `dwelling` is the median while all ramps dwell, `advancing` the median of runs in which `ready`
    ramps advance. `going_back` is the sum of the `ticks` runs that roll back all ramps with a
    failing gate.
    """

    count: int
    ready: int
    dwelling: TickCost
    advancing: TickCost
    going_back: TickCost
    ticks: int


def measure(count: int) -> RampCosts:
    """Create `count` ramps; measure them dwelling, some advancing, and a third rolling back."""
    from controlplane.core.clock import db_now

    ramp_fixtures.create_target(db_now())
    began = db_now()
    ramps = ramp_fixtures.create_ramps(count, began)
    moments = _moments(began)
    try:
        dwelling = _dwell(moments)
        ready = iter(sorted(ramps["none"] + ramps["external"]))
        each = min(ADVANCES, count // (2 * ROUNDS))
        advancing = [_advance([next(ready) for _ in range(each)], moments) for _ in range(ROUNDS)]
        going_back = list(_go_back(ramps["external"], moments))
    finally:
        ramp_fixtures.delete_ramps()
    back = combine_costs(going_back, sum, moved=sum)
    middle = combine_costs(advancing, median)
    return RampCosts(count, each, dwelling, middle, back, len(going_back))


def _moments(began: datetime) -> Iterator[datetime]:
    """Yield times for the runs of the task: one second apart, or more after a slow run."""
    now = began
    for _ in range(MAX_TICKS):
        since = time.monotonic()
        now += timedelta(seconds=1)
        yield now
        now += timedelta(seconds=time.monotonic() - since)
    raise SystemExit(f"bench: ramps have not come to where they go within {MAX_TICKS} ticks")


def _dwell(moments: Iterator[datetime]) -> TickCost:
    costs = []
    for number in range(LOOKS):
        now = next(moments)
        if number % RENEWED_EVERY == 0:
            ramp_fixtures.answer_gates("ok", now)
        costs.append(_tick(now))
    if moved := sum(one.moved for one in costs):
        raise SystemExit(f"bench: a ramp moved before its time: {moved}, not 0")
    return combine_costs(costs[RENEWED_EVERY:], median)  # The first ones warm up.


def _advance(ready: list[int], moments: Iterator[datetime]) -> TickCost:
    now = next(moments)
    ramp_fixtures.answer_gates("ok", now)
    ramp_fixtures.end_dwell(ready, now)
    cost = _tick(now)
    while _tick(next(moments)).moved:
        pass  # On a slow machine, one run has no time for all ramps.
    return cost


def _go_back(failing: list[int], moments: Iterator[datetime]) -> Iterator[TickCost]:
    from switches.models import Episode

    now = next(moments)
    ramp_fixtures.answer_gates("fail", now)
    left = Episode.objects.filter(ramps__in=failing, allow_percent__gt=0)
    while left.exists():
        yield _tick(now)
        now = next(moments)


def _tick(now: datetime) -> TickCost:
    from controlplane.core.jobs import engine

    return measure_tick(lambda: engine.run_tick("ramps.turn", now))
