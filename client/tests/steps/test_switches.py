"""Jobs and kill switches: no step begins while a switch that guards it is engaged."""

import asyncio

import pytest
import tenacity

from switchgear import Retry, RetryParameters
from switchgear.steps import Job, JobStatus, Runner, Step
from switchgear.testing import Console


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.fixture
def gear(console):
    return console.client()


def runner_of(bench, *steps, guard=None, on_failure="compensate"):
    job = Job("job", steps, guard=guard, on_failure=on_failure)
    return Runner(bench.store, [job], clock=bench.time.wall)


def steps_that_engage(console, done):
    """Return two steps; the switch is engaged while the first one runs."""

    def first(context):
        done.append("first")
        console.engage("feature:chat", reason="data leaks")

    return Step(name="first", run=first), Step(name="second", run=lambda _: done.append("second"))


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_engaged_between_two_steps_pauses_the_job_until_it_is_released(
    bench, console, gear, is_async
):
    done = []
    guard = gear.guard(feature="chat")
    runner = runner_of(bench, *steps_that_engage(console, done), guard=guard)
    job_id = runner.add("job")

    def run():
        return asyncio.run(runner.arun(job_id)) if is_async else runner.run(job_id)

    paused = run()
    still_paused = run()
    console.release("feature:chat")
    completed = run()

    assert (paused.status, still_paused.status) == (JobStatus.PAUSED, JobStatus.PAUSED)
    assert "feature:chat: data leaks" in paused.reason
    assert completed.status is JobStatus.COMPLETED
    assert done == ["first", "second"]


def test_guard_around_the_runner_is_checked_before_each_step(bench, console, gear):
    done = []
    runner = runner_of(bench, *steps_that_engage(console, done))

    with gear.guard(feature="chat"):
        paused = runner.run(runner.add("job"))

    assert paused.status is JobStatus.PAUSED
    assert done == ["first"]


def test_refused_step_counts_as_no_attempt(bench, console, gear):
    console.engage("feature:chat")
    runner = runner_of(
        bench, Step(name="only", run=lambda _: None), guard=gear.guard(feature="chat")
    )
    job_id = runner.add("job")

    for _ in range(20):
        runner.run(job_id)
    console.release("feature:chat")

    assert runner.run(job_id).status is JobStatus.COMPLETED


@pytest.mark.parametrize(
    "retry",
    [
        Retry("step", RetryParameters(attempts=3, base_seconds=0)),
        tenacity.retry(stop=tenacity.stop_after_attempt(3)),
    ],
    ids=["ours", "tenacity"],
)
def test_engaged_between_two_attempts_pauses_the_job(bench, console, gear, retry):
    attempts = []

    def run(context):
        attempts.append(context.attempt)
        console.engage("feature:chat")
        raise ConnectionError

    step = Step(name="only", run=run, retry=retry)
    runner = runner_of(bench, step, guard=gear.guard(feature="chat"))

    paused = runner.run(runner.add("job"))

    assert paused.status is JobStatus.PAUSED
    assert attempts == [1]


def test_compensation_runs_while_the_switch_is_engaged(bench, console, gear):
    undone = []

    def failing(context):
        console.engage("feature:chat")
        raise ValueError("no")

    runner = runner_of(
        bench,
        Step(name="first", run=lambda _: None, compensate=lambda _: undone.append("first")),
        Step(name="second", run=failing),
        guard=gear.guard(feature="chat"),
    )

    assert runner.run(runner.add("job")).status is JobStatus.FAILED
    assert undone == ["first"]


def test_running_step_is_cancelled_on_request_and_begins_again(bench, console, gear):
    begun = []

    async def run(context):
        begun.append(context.attempt)
        if len(begun) == 1:
            console.engage("feature:chat")
            await asyncio.sleep(60)

    guard = gear.guard(feature="chat", on_engage="cancel")
    runner = runner_of(bench, Step(name="only", run=run), guard=guard)
    job_id = runner.add("job")

    paused = asyncio.run(asyncio.wait_for(runner.arun(job_id), 10))
    console.release("feature:chat")
    completed = asyncio.run(runner.arun(job_id))

    assert (paused.status, completed.status) == (JobStatus.PAUSED, JobStatus.COMPLETED)
    assert len(begun) == 2
