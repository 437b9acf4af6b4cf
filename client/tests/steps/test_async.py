"""Jobs in an event loop: coroutines run on it, plain functions in threads."""

import asyncio
import threading

import pytest

from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.steps import JobStatus, LeaseLost, Step, StepStatus
from tests.steps.jobs import Outside


def test_coroutines_and_functions_make_one_job(bench):
    outside, threads = Outside(), []

    async def first(context):
        async def act():
            await asyncio.sleep(0)
            return outside.send("first")

        await context.asave_checkpoint({"at": 1})
        again = [await context.aonce("mail", "there", "first", act) for _ in range(2)]
        async with context.effect("mail", "there", "second") as effect:
            effect.outcome = 2
        return again

    def second(context):
        threads.append(threading.current_thread() is threading.main_thread())
        return len(context.outputs["first"])

    runner = bench.runner(Step(name="first", run=first), Step(name="second", run=second))
    job = asyncio.run(runner.arun(runner.add("job")))

    assert job.status is JobStatus.COMPLETED
    assert outside.sent == ["first"]
    assert threads == [False]
    assert [row.output for row in runner.look(job.id).steps][1] == 2


def test_coroutine_step_is_run_and_retried_without_a_loop(bench):
    seen = []

    async def flaky(context):
        await asyncio.sleep(0)
        seen.append(context.attempt)
        if len(seen) < 2:
            raise ConnectionError("away")

    retry = Retry("job", RetryParameters(attempts=2, base_seconds=0))
    runner = bench.runner(Step(name="flaky", run=flaky, retry=retry))
    assert runner.run(runner.add("job")).status is JobStatus.COMPLETED
    assert seen == [1, 2]


def test_run_within_a_loop_names_arun(bench):
    runner = bench.runner(Step(name="step", run=print))
    job_id = runner.add("job")

    async def wrong():
        with pytest.raises(RuntimeError, match="arun"):
            runner.run(job_id)

    asyncio.run(wrong())
    assert runner.look(job_id).job.epoch == 0


def test_cancelled_job_can_be_run_again_at_once(bench):
    seen = []

    async def slow(context):
        seen.append(context.attempt)
        if context.attempt == 1:
            await asyncio.sleep(3600)

    runner = bench.runner(Step(name="slow", run=slow))
    job_id = runner.add("job")

    async def cancelled():
        task = asyncio.create_task(runner.arun(job_id))
        while not seen:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await runner.arun_due()

    (job,) = asyncio.run(cancelled())
    assert (job.status, seen) == (JobStatus.COMPLETED, [1, 2])


def test_cancellation_stops_a_function_at_its_next_word(bench):
    begun, stopped = threading.Event(), []

    def slow(context):
        begun.set()
        while True:
            try:
                context.save_checkpoint(1)
            except LeaseLost:
                stopped.append(True)
                raise

    runner = bench.runner(Step(name="slow", run=slow))
    job_id = runner.add("job")

    async def cancelled():
        task = asyncio.create_task(runner.arun(job_id))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stopped == [True]

    asyncio.run(cancelled())
    progress = runner.look(job_id)
    assert progress.job.status is JobStatus.PENDING
    assert progress.steps[0].status is StepStatus.RUNNING


def test_asynchronous_compensation_and_failure(bench):
    undone = []

    async def undo(context):
        await asyncio.sleep(0)
        undone.append(context.output)

    async def fail(context):
        raise ValueError("broken")

    first = Step(name="first", run=lambda context: 1, compensate=undo)
    runner = bench.runner(first, Step(name="fail", run=fail))
    job = asyncio.run(runner.arun(runner.add("job")))
    assert (job.status, undone) == (JobStatus.FAILED, [1])
