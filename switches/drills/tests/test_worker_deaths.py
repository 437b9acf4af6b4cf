"""Workers of drills that die at any probe point: the next one continues, with no effect twice."""

from datetime import timedelta

import pytest

from controlplane.core.jobs.claims import LEASE
from controlplane.core.jobs.models import Job
from switches.drills.tests.drill_helpers import (
    CANARY,
    acknowledge,
    audit_actions,
    begin,
    mark,
    run_drill,
    turn,
    version,
)
from switches.models import Switch

POINTS = [
    "drill.claimed",
    *(
        f"step.{step}.{point}"
        for step in ("look", "engage", "engaged_applied", "release", "released_applied", "record")
        for point in ("found", "begun", "run", "passed")
    ),
    "drill.engage.looked",
    "drill.release.looked",
    "drill.engaged.written",
    "drill.released.written",
    "drill.ended.written",
    "drill.worked",
]


class Killed(BaseException):
    """Raised at a probe point to simulate a SIGKILL of the worker."""


def list_points(now):
    """Return every probe point that a drill passes."""
    points = []
    mark(CANARY, now=now)
    acknowledge(CANARY, now=now)
    drill = begin(now=now)
    for _ in range(10):
        acknowledge(CANARY, now=now)
        turn(now, points.append)
        now += timedelta(seconds=1)
    assert not Job.objects.get(pk=drill.pk).is_live
    return points


def test_these_are_all_the_points_there_are(now):
    assert set(list_points(now)) == set(POINTS)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("deaths", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_it_is_gone_on_with(now, point, deaths):
    mark(CANARY, now=now)
    acknowledge(CANARY, now=now)
    drill, before, deaths_left = begin(now=now), version(), deaths

    def probe(passed):
        nonlocal deaths_left
        if passed == point and deaths_left:
            deaths_left -= 1
            raise Killed

    while deaths_left and Job.objects.get(pk=drill.pk).is_live:
        acknowledge(CANARY, now=now)
        try:
            turn(now, probe)
        except Killed:
            now += LEASE
        now += timedelta(seconds=1)
    ended = run_drill(drill, CANARY, now=now)

    assert deaths_left == 0 or deaths == 2
    assert ended.passed is True, ended.failure_reason
    assert version() == before + 2
    assert audit_actions() == [
        "drill.marked",
        "drill.begun",
        "drill.engaged",
        "drill.released",
        "drill.passed",
    ]
    assert Switch.objects.get().last_proven_at is not None
