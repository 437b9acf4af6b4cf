"""Ramps while their dependencies are killed, stopped or emptied: possibly late, never wrong.

Each fault is injected into two ramps of one installation: one completes, the other's gate fails
half way.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from itertools import count

import psycopg
import pytest
import redis

from controlplane.tests.installation import ROOT, running, wait_until
from controlplane.tests.observed_ramps import PERCENTS, SCOPES, Ramp, watching

pytestmark = [pytest.mark.faults, pytest.mark.timeout(90)]

DWELL = 3.0
WORKER, BEAT = ("celery", "worker"), ("celery", " beat ")
STOPPED_SECONDS = 17
numbers = count(1)


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    with running(tmp_path_factory.mktemp("ramps") / "var") as one:
        yield one


@pytest.fixture(scope="module")
def client(installation):
    with installation.client(installation.token(*SCOPES)) as one:
        yield one


@pytest.fixture
def ramps(installation, client):
    """A ramp without gates, and one with an external gate at its second step."""
    wait_until(lambda: _all_well(installation), 40, lambda: _ticks(installation))
    number = next(numbers)
    return [
        Ramp(installation, client, f"through-{number}", DWELL, ""),
        Ramp(installation, client, f"back-{number}", DWELL, f"smoke-{number}"),
    ]


def none(_installation, _step):
    """Do nothing."""


def kill_worker(installation, _step):
    _kill(installation, *WORKER)


def kill_redis(installation, _step):
    _kill(installation, "redis-server")


def empty_redis(installation, _step):
    redis.Redis.from_url(installation.services()["redis_url"]).flushall()


def kill_beat(installation, _step):
    _kill(installation, *BEAT)


def kill_postgresql(installation, step):
    if step == 1:
        _kill(installation, "postgres", "-D")


def stop_worker(installation, step):
    """Suspend a worker for longer than a lease; it may hold one, and locks too."""
    if step == 1:
        with installation.suspended(*WORKER):
            time.sleep(STOPPED_SECONDS)
        time.sleep(2)  # What it was about to write is on its way now.


@contextlib.contextmanager
def without_worker_and_beat(installation):
    with installation.suspended("celery"):
        yield


@contextlib.contextmanager
def without_beat(installation):
    with installation.suspended(*BEAT):
        yield


@contextlib.contextmanager
def two_beats(installation):
    command = [sys.executable, "-m", "celery", "--quiet", "--app", "controlplane.celery", "beat"]
    second = subprocess.Popen(command, cwd=ROOT, env=installation.environment)
    try:
        yield
        assert second.poll() is None, "the second beat has ended by itself"
    finally:
        second.kill()
        second.wait(10)


AT_EACH_STEP = [
    (none, 3),
    (kill_worker, 20),
    (stop_worker, 40),
    (empty_redis, 10),
    (kill_redis, 15),
    (kill_postgresql, 35),
    (kill_beat, 15),
]
ALL_THE_TIME = [(without_beat, 15), (without_worker_and_beat, 15), (two_beats, 3)]


@pytest.mark.parametrize(
    ("fault", "latest"), AT_EACH_STEP, ids=[fault.__name__ for fault, _ in AT_EACH_STEP]
)
def test_fault_in_each_step_delays_ramps_and_changes_nothing_else(
    installation, client, ramps, fault, latest
):
    through, back = ramps
    with watching(client, *ramps) as watched:
        for step, percent in enumerate(PERCENTS):
            reached = lambda p=percent: p in watched.percents(through)  # noqa: E731
            wait_until(reached, 60, lambda: _list_percents(watched, ramps))
            time.sleep(random.uniform(0, 0.5))
            fault(installation, step)
            if step == 1:
                wait_until(
                    lambda: watched.now(back) == 25, 60, lambda: _list_percents(watched, ramps)
                )
                back.report("fail")
        _until_over(ramps, watched)

    _assert_as_planned(through, back, watched, latest, fault.__name__)


@pytest.mark.parametrize(
    ("fault", "latest"), ALL_THE_TIME, ids=[fault.__name__ for fault, _ in ALL_THE_TIME]
)
def test_fault_all_the_time_delays_ramps_and_changes_nothing_else(
    installation, client, ramps, fault, latest
):
    through, back = ramps
    with watching(client, *ramps) as watched, fault(installation):
        wait_until(lambda: watched.now(back) == 25, 60, lambda: _list_percents(watched, ramps))
        back.report("fail")
        _until_over(ramps, watched)

    _assert_as_planned(through, back, watched, latest, fault.__name__)


@pytest.mark.smoke
def test_engage_in_a_storm_of_kills_wins_and_stays(installation, client):
    number, over = next(numbers), threading.Event()
    ramps = [Ramp(installation, client, f"storm-{number}-{n}", 1.0, "") for n in range(4)]
    storm = threading.Thread(target=_storm, args=(installation, over), daemon=True)
    with watching(client, *ramps) as watched:
        storm.start()
        try:
            for pause, ramp in zip((0.2, 1.0, 2.0, 4.0), ramps, strict=True):
                time.sleep(pause)
                if ramp.state() != "completed":
                    answer = ramp.engage().json()
                    assert (answer["state"], answer["allow_percent"]) == ("engaged", 0)
            engaged = [ramp for ramp in ramps if ramp.state() == "cancelled"]
            assert engaged, "all ramps were through before anybody engaged"
            wait_until(lambda: all(watched.now(ramp) == 0 for ramp in engaged), 3)
            time.sleep(5)
        finally:
            over.set()
            storm.join()
    for ramp in engaged:
        told = watched.percents(ramp)
        assert told[-1] == 0, told
        assert told.count(0) == 1, told
        assert ramp.actions()[-1] == "switch.engaged"
        watched.assert_never_above_plan(ramp)
    print(f"{len(engaged)} of {len(ramps)} ramps engaged in the storm")


def _storm(installation, over):
    """Kill processes that run ticks, repeatedly, but not so fast that the supervisor gives up."""
    while not over.wait(random.uniform(2.2, 4)):
        for words in (WORKER, ("watchdog",)):
            with contextlib.suppress(AssertionError, ProcessLookupError):
                _kill(installation, *words)


def _until_over(ramps, watched):
    wait_until(
        lambda: all(ramp.is_over() for ramp in ramps), 60, lambda: _list_percents(watched, ramps)
    )
    through, back = ramps
    wait_until(lambda: watched.now(through) is None and watched.now(back) == 0, 5)


def _assert_as_planned(through, back, watched, latest, name):
    late = [*through.late(), *back.late()]
    print(f"\n{name:24} late by {', '.join(f'{each:.1f}' for each in late)} s")
    assert watched.percents(through) == [5, 25, 100, None]
    assert watched.percents(back) == [5, 25, 0]
    for ramp in (through, back):
        watched.assert_never_above_plan(ramp)
    start = ["switch.engaged", "ramp.started", "ramp.advanced"]
    assert through.actions() == [*start, "ramp.advanced", "switch.released"]
    # Its gate has no data before it fails: a fault that takes long lets it hold.
    went_back = [action for action in back.actions() if action != "ramp.held"]
    assert went_back == [*start, "ramp.compensated"]
    assert min(late) >= 0
    assert max(late) < latest


def _list_percents(watched, ramps):
    return [(ramp.switch, watched.percents(ramp)) for ramp in ramps]


def _kill(installation, *words):
    os.kill(installation.pid_of(*words), signal.SIGKILL)


def _all_well(installation):
    """Return True once the ticks of ramps no longer fall to the watchdog, and all is ready.

    Beat notes a turn itself if there is nothing to do.
    """
    return installation.is_ready() and _ticks(installation) in {"worker", "beat"}


def _ticks(installation):
    query = (
        "SELECT ran_by FROM core_tick WHERE name = 'ramps.turn'"
        " AND ran_at > clock_timestamp() - interval '2 s'"
    )
    try:
        with psycopg.connect(installation.services()["database_owner_url"]) as database:
            found = database.execute(query).fetchone()
    except psycopg.OperationalError:
        return None
    return found[0] if found else None
