"""Compensations that fail, die, or are interrupted."""

import pytest

from switchgear.refusals import CircuitOpen
from switchgear.steps import EffectState, JobCompleted, JobStatus, Step, StepStatus
from tests.steps.jobs import Outside


def fail(context):
    raise ValueError("no such order")


def test_compensation_that_failed_is_tried_again_by_a_person(bench):
    undone, is_broken = [], [True]

    def undo(context):
        if is_broken:
            raise ConnectionError("the bank is down")
        undone.append("b")

    steps = (
        Step(name="a", run=lambda context: 1, compensate=lambda context: undone.append("a")),
        Step(name="b", run=lambda context: 2, compensate=undo, max_attempts=1),
        Step(name="c", run=fail),
    )
    runner = bench.runner(*steps)
    failed = runner.run(runner.add("job"))
    is_broken.clear()
    assert runner.resume(failed.id) == failed

    again = runner.compensate(failed.id)
    assert (again.status, again.reason) == (JobStatus.FAILED, "c: ValueError: no such order")
    assert [row.status for row in runner.look(failed.id).steps] == [
        StepStatus.COMPENSATED,
        StepStatus.COMPENSATED,
        StepStatus.FAILED,
    ]
    runner.compensate(failed.id)
    assert undone == ["a", "b"]


def test_compensation_that_kills_its_workers_fails_in_the_end(bench):
    begun, undone = [], []

    def deadly(context):
        begun.append(1)
        raise SystemExit(9)

    steps = (
        Step(name="a", run=lambda context: 1, compensate=lambda context: undone.append("a")),
        Step(name="b", run=lambda context: 2, compensate=deadly, max_attempts=3),
        Step(name="c", run=fail),
    )
    runner = bench.runner(*steps)
    job_id = runner.add("job")
    for _ in range(3):
        with pytest.raises(SystemExit):
            runner.run(job_id)
    (job,) = runner.run_due()

    assert (job.status, job.reason) == (JobStatus.FAILED, "c: ValueError: no such order")
    row = runner.look(job_id).steps[1]
    assert row.status is StepStatus.COMPENSATION_FAILED
    assert row.error == "RuntimeError: b was compensated 3 times"
    assert (len(begun), undone) == (3, ["a"])


def test_compensation_that_is_refused_is_no_try(bench):
    refusals = [CircuitOpen("core->bank", 5.0) for _ in range(5)]
    undone = []

    def undo(context):
        if refusals:
            raise refusals.pop()
        undone.append(1)

    runner = bench.runner(
        Step(name="a", run=lambda context: 1, compensate=undo, max_attempts=2),
        Step(name="c", run=fail),
    )
    job_id = runner.add("job")
    for _ in range(6):
        job = runner.run(job_id)
    assert (job.status, undone) == (JobStatus.FAILED, [1])
    assert job.reason == "c: ValueError: no such order"


def test_step_with_invalid_output_is_compensated(bench):
    undone = []
    runner = bench.runner(
        Step(
            name="a",
            run=lambda context: {1, 2},
            compensate=lambda context: undone.append(context.output),
        )
    )
    job = runner.run(runner.add("job"))
    assert undone == [None]
    assert runner.look(job.id).steps[0].status is StepStatus.COMPENSATED


def test_effects_of_a_step_that_waits_are_undone(bench):
    outside = Outside()

    def run(context):
        context.once("seat", "theatre", "seat", lambda: outside.send("seat"))
        context.pause("the other side has to answer")

    runner = bench.runner(
        Step(name="a", run=run, compensate=lambda context: outside.send("no seat"))
    )
    paused = runner.run(runner.add("job"))
    job = runner.compensate(paused.id)
    assert (job.status, job.reason) == (JobStatus.FAILED, "compensated")
    assert outside.sent == ["seat", "no seat"]
    assert runner.look(job.id).effects[0].state is EffectState.UNDONE


def test_compensating_a_completed_job_raises(bench):
    undone = []
    runner = bench.runner(Step(name="a", run=lambda context: 1, compensate=undone.append))
    done = runner.run(runner.add("job"))
    with pytest.raises(JobCompleted, match="is completed: only a failed or waiting job"):
        runner.compensate(done.id)
    assert undone == []


def test_held_job_keeps_its_reason_when_it_is_undone(bench):
    runner = bench.runner(Step(name="c", run=fail), on_failure="hold")
    held = runner.run(runner.add("job"))
    assert runner.compensate(held.id).reason == "c: ValueError: no such order"
