"""Third-party decorators around a step, and isolation between steps."""

import asyncio
import functools

import pytest
import tenacity

from switchgear.steps import JobStatus, LeaseLost, Step


def stubborn(function):
    """Try everything three times, like decorators of other libraries."""

    @functools.wraps(function)
    def tried():
        for _ in range(2):
            try:
                return function()
            except Exception:
                continue
        return function()

    return tried


FOREIGN = [
    stubborn,
    tenacity.retry(
        stop=tenacity.stop_after_attempt(3),
        retry=tenacity.retry_any(
            tenacity.retry_if_exception_type(Exception),
            tenacity.retry_if_result(lambda output: output is None),
        ),
    ),
]


@pytest.mark.parametrize("retry", FOREIGN)
def test_pause_is_not_tried_again(bench, retry):
    begun = []

    def run(context):
        begun.append(context.attempt)
        context.pause("later", 5)

    runner = bench.runner(Step(name="step", run=run, retry=retry))
    job = runner.run(runner.add("job"))
    assert (job.status, begun) == (JobStatus.PAUSED, [1])
    assert job.reason == "Paused: paused: later"


def test_pause_of_a_coroutine_is_not_tried_again(bench):
    begun = []

    async def run(context):
        begun.append(context.attempt)
        context.pause("later", 5)

    runner = bench.runner(Step(name="step", run=run, retry=FOREIGN[1]))
    job = asyncio.run(runner.arun(runner.add("job")))
    assert (job.status, begun) == (JobStatus.PAUSED, [1])


def test_lost_lease_is_not_tried_again(bench):
    begun = []

    def run(context):
        begun.append(1)
        bench.time.advance(1000)
        bench.store.claim(context.job_id, "other", bench.time.wall(), 300.0)
        context.save_checkpoint(1)

    runner = bench.runner(Step(name="step", run=run, retry=stubborn))
    with pytest.raises(LeaseLost):
        runner.run(runner.add("job"))
    assert begun == [1]


def test_failure_is_tried_again_by_others_too(bench):
    begun = []

    def run(context):
        begun.append(context.attempt)
        if context.attempt < 3:
            raise ConnectionError("away")
        return "done"

    runner = bench.runner(Step(name="step", run=run, retry=stubborn))
    job = runner.run(runner.add("job"))
    assert (job.status, begun) == (JobStatus.COMPLETED, [1, 2, 3])
    assert runner.look(job.id).steps[0].output == "done"


def test_steps_get_copies_of_stored_values(bench):
    seen = []

    def first(context):
        context.input["n"] = 99
        return {"list": [1]}

    def second(context):
        context.outputs["first"]["list"].append(2)
        seen.append((context.input, context.outputs["first"]))
        context.save_checkpoint({"at": 1})
        context.previous_checkpoint["at"] = 2
        seen.append(context.previous_checkpoint)

    def third(context):
        assert (list(context.outputs), len(context.outputs)) == (["first", "second"], 2)
        seen.append((context.input, context.outputs["first"]))

    runner = bench.runner(
        Step(name="first", run=first), Step(name="second", run=second), Step(name="z", run=third)
    )
    runner.run(runner.add("job", {"n": 1}))
    assert seen == [({"n": 1}, {"list": [1, 2]}), {"at": 1}, ({"n": 1}, {"list": [1]})]
