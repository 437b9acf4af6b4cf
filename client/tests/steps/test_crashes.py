"""Real workers that are killed, stopped, and race for jobs."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from switchgear.steps import EffectState, Job, JobStatus, Runner, SQLiteStore, Step, StepStatus
from tests.service_processes import environment
from tests.steps.receiver import Moment, receiver
from tests.wait_helpers import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.smoke]
MOMENTS: tuple[Moment, ...] = ("before", "after", "answered")
OVER = (JobStatus.COMPLETED, JobStatus.FAILED)
PLANS = {"forward": ("a", "bulk", "z"), "backward": ("a", "b", "broken"), "stopped": ("stopped",)}
KEYS = {
    "forward": ("a", "bulk:0", "bulk:1", "bulk:2", "bulk:3", "z"),
    "backward": ("a", "b", "undo-b", "undo-a"),
}


@contextlib.contextmanager
def worker(path: Path, url: str, stuck: float, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.steps.worker", str(path), url, str(stuck), *more],
        env=environment(None, path.parent),
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def add(path: Path, *names: str) -> tuple[Runner, list[str]]:
    """Add a job of each name, to be run by workers."""
    jobs = [Job(name, tuple(Step(name=each, run=print) for each in PLANS[name])) for name in PLANS]
    runner = Runner(SQLiteStore(path), jobs)
    return runner, [runner.add(name, job_id=f"{name}-{n}") for n, name in enumerate(names)]


def are_over(runner: Runner, ids: list[str]) -> bool:
    return all(runner.look(job_id).job.status in OVER for job_id in ids)


def expected(ids: list[str]) -> Counter[str]:
    return Counter(f"{each}:{key}" for each in ids for key in KEYS[each.split("-")[0]])


@pytest.mark.parametrize("seed", range(3))
def test_killed_workers_leave_every_effect_done_exactly_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    deliveries = sorted(chance.sample(range(1, 11), 5))
    kills = {n: (chance.choice(MOMENTS), chance.uniform(0, 0.01)) for n in deliveries}
    path = tmp_path / "jobs.db"
    runner, ids = add(path, "forward", "backward")

    with receiver(kills) as there:
        for _ in range(len(kills) + 1):
            with worker(path, there.url, 0.2) as process:
                wait_until(
                    lambda: process.poll() is not None or are_over(runner, ids),
                    explain="the worker dies or is done",
                )
        assert are_over(runner, ids)

    assert there.killed == len(kills)
    assert there.done == expected(ids)
    unsure = sum(moment != "answered" for moment, _ in kills.values())
    repeated = len(there.deliveries) - len(there.done)
    assert unsure <= repeated <= len(kills)
    assert [runner.look(job_id).job.status for job_id in ids] == [*OVER]
    for job_id in ids:
        assert runner.look(job_id).unknown_effects == ()
    statuses = [row.status for row in runner.look(ids[1]).steps]
    assert statuses == [StepStatus.COMPENSATED, StepStatus.COMPENSATED, StepStatus.FAILED]


def test_intent_of_a_dead_worker_is_visible_as_unknown(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    runner, (job_id,) = add(path, "forward")
    with receiver({3: ("after", 0.0)}) as there, worker(path, there.url, 60.0) as process:
        assert process.wait(60) == -signal.SIGKILL

    progress = runner.look(job_id)
    assert progress.job.status is JobStatus.RUNNING
    assert [row.key for row in progress.unknown_effects] == [f"{job_id}:bulk:1"]
    assert [row.state for row in progress.effects] == [
        EffectState.DONE,
        EffectState.DONE,
        EffectState.UNKNOWN,
    ]
    assert progress.steps[1].checkpoint == 1


def test_suspended_worker_writes_nothing_after_takeover(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    runner, (job_id,) = add(path, "stopped")
    with worker(path, "http://127.0.0.1:9", 0.3, job_id) as first:
        wait_until((tmp_path / "jobs.db.stopped").exists, explain="it stands still")
        with worker(path, "http://127.0.0.1:9", 0.3):
            wait_until(lambda: are_over(runner, [job_id]), explain="another takes over")
        before = runner.look(job_id)
        os.kill(first.pid, signal.SIGCONT)
        assert first.wait(60) == 3

    assert runner.look(job_id) == before
    assert before.job.epoch == 2
    assert before.steps[0].output == "from the living"
    assert before.steps[0].checkpoint == "attempt 2"


def test_workers_that_compete_do_each_effect_once(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    runner, ids = add(path, *["forward", "backward"] * 3)
    with receiver() as there, contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(worker(path, there.url, 60.0))
        wait_until(lambda: are_over(runner, ids), explain="all are over")

    assert Counter(there.deliveries) == expected(ids)
    assert {runner.look(job_id).job.epoch for job_id in ids} == {1}


def test_slow_worker_with_signs_of_life_keeps_its_job(tmp_path: Path) -> None:
    """Its step takes several times as long as `stuck_seconds`."""
    store = SQLiteStore(tmp_path / "jobs.db")
    step = Step(name="slow", run=lambda context: time.sleep(1.5))
    slow, other = (
        Runner(store, [Job("job", (step,))], heartbeat_seconds=0.05, stuck_seconds=0.6)
        for _ in range(2)
    )
    job_id = slow.add("job")
    taken: list[object] = []
    thread = threading.Thread(target=lambda: taken.append(slow.run(job_id)))
    thread.start()
    wait_until(lambda: slow.look(job_id).job.status is JobStatus.RUNNING, explain="it runs")
    while thread.is_alive():
        assert other.run_due() == []
        time.sleep(0.05)
    thread.join()
    assert slow.look(job_id).job.epoch == 1
    store.close()
