"""The identity of effects and steps, which a key alone does not give."""

import threading

import pytest

from switchgear.steps import EffectState, JobStatus, Step, StepStatus
from tests.steps.jobs import Outside


def fail(context):
    raise ValueError("broken")


def test_refund_under_the_key_of_its_payment_is_made(bench):
    outside = Outside()

    def pay(context):
        context.once("transfer", "bank", context.key, lambda: outside.send("paid"))

    def refund(context):
        assert not context.was_recorded("transfer", "bank", context.key)
        context.once("transfer", "bank", context.key, lambda: outside.send("refunded"))

    runner = bench.runner(Step(name="pay", run=pay, compensate=refund), Step(name="z", run=fail))
    job = runner.run(runner.add("job"))

    assert outside.sent == ["paid", "refunded"]
    progress = runner.look(job.id)
    assert progress.steps[0].status is StepStatus.COMPENSATED
    assert [(row.is_compensation, row.state) for row in progress.effects] == [
        (False, EffectState.UNDONE),
        (True, EffectState.DONE),
    ]


def test_each_job_makes_its_own_refund(bench):
    outside = Outside()

    def pay(context):
        context.once("payment", "bank", "order:17", lambda: outside.send("paid"))

    def refund(context):
        context.once("refund", "bank", "order:17", lambda: outside.send("refunded"))

    runner = bench.runner(Step(name="pay", run=pay, compensate=refund), Step(name="z", run=fail))
    for _ in range(2):
        runner.run(runner.add("job"))
    assert outside.sent == ["paid", "refunded"] * 2


@pytest.mark.parametrize("are_in_one_job", [True, False])
def test_two_effects_with_one_key_are_both_made(bench, are_in_one_job):
    outside = Outside()
    effects = [("payment", "bank"), ("payment", "other bank"), ("email", "bank")]

    def run(context):
        for kind, target in context.input:
            assert not context.was_recorded(kind, target, "order:17")
            context.once(kind, target, "order:17", lambda: outside.send(f"{kind} {target}"))  # noqa: B023
            assert context.was_recorded(kind, target, "order:17")

    runner = bench.runner(Step(name="run", run=run))
    for each in [effects] if are_in_one_job else [[effect] for effect in effects]:
        assert runner.run(runner.add("job", each)).status is JobStatus.COMPLETED
    assert outside.sent == ["payment bank", "payment other bank", "email bank"]


def test_two_steps_with_one_idempotency_key_are_both_done(bench):
    done = []
    steps = [
        Step(
            name=name,
            run=lambda context: done.append(context.step),
            idempotency_key=lambda context: "order:17",
        )
        for name in ("charge", "ship")
    ]
    runner = bench.runner(*steps)
    runner.run(runner.add("job"))
    assert done == ["charge", "ship"]


def test_effects_with_one_key_are_settled_one_by_one(bench):
    def run(context):
        for kind in ("payment", "email"):
            try:
                with context.effect(kind, "there", "order:17"):
                    raise TimeoutError
            except TimeoutError:
                pass
        raise ValueError("both unknown")

    runner = bench.runner(Step(name="run", run=run), on_failure="hold")
    job = runner.run(runner.add("job"))
    with pytest.raises(ValueError, match=r"2 effects of the job .* have the key order:17"):
        runner.settle(job.id, "order:17", is_done=True)
    assert runner.settle(job.id, "order:17", is_done=True, kind="email")
    assert [(row.kind, row.state) for row in runner.look(job.id).effects] == [
        ("payment", EffectState.UNKNOWN),
        ("email", EffectState.DONE),
    ]


def test_unkeyed_effect_that_another_job_may_have_made_waits_for_a_person(bench):
    outside = Outside()

    def ship(context):
        def act():
            outside.send("parcel")
            if len(outside.sent) == 1:
                raise ConnectionError("lost")

        context.once("parcel", "warehouse", "order:17", act, is_keyed=False)

    runner = bench.runner(Step(name="ship", run=ship), on_failure="hold")
    first = runner.run(runner.add("job"))
    second = runner.run(runner.add("job"))
    assert second.status is JobStatus.PAUSED
    assert f"order:17 of the job {first.id} may have happened" in second.reason

    assert not runner.settle(second.id, "order:17", is_done=True)
    assert runner.settle(first.id, "order:17", is_done=True)
    bench.time.advance(60)
    (done,) = runner.run_due()
    assert (done.id, done.status) == (second.id, JobStatus.COMPLETED)
    assert outside.sent == ["parcel"]


def keyed(run, **more):
    return Step(name="keyed", run=run, idempotency_key=lambda context: "k", **more)


def test_two_jobs_with_one_key_at_once_do_the_step_once(bench):
    begun, gate = [], threading.Event()

    def run(context):
        begun.append(context.job_id)
        gate.wait(20)
        return "made"

    runner = bench.runner(keyed(run))
    first, second = runner.add("job"), runner.add("job")
    thread = threading.Thread(target=runner.run, args=(first,))
    thread.start()
    while not begun:
        thread.join(0.01)
    waits = runner.run(second)
    gate.set()
    thread.join()

    assert (waits.status, waits.resume_at) == (JobStatus.PAUSED, bench.time.wall() + 30)
    assert first in waits.reason
    bench.time.advance(30)
    (done,) = runner.run_due()
    assert done.status is JobStatus.COMPLETED
    row = runner.look(second).steps[0]
    assert (row.output, row.is_reused, begun) == ("made", True, [first])


def test_output_is_not_taken_from_a_job_that_may_still_be_undone(bench):
    done, is_broken = [], [True]

    def then(context):
        if context.previous_checkpoint is None:
            context.save_checkpoint(1)
            context.pause("a while", 10)
        if is_broken:
            raise ValueError("broken")

    def reserve(context):
        done.append(("reserve", context.job_id))

    def release(context):
        done.append(("release", context.job_id))

    runner = bench.runner(keyed(reserve, compensate=release), Step(name="then", run=then))
    first = runner.run(runner.add("job"))
    second = runner.run(runner.add("job"))
    assert (first.status, second.status) == (JobStatus.PAUSED, JobStatus.PAUSED)

    assert runner.run(first.id).status is JobStatus.FAILED
    is_broken.clear()
    runner.run(second.id)
    assert runner.run(second.id).status is JobStatus.COMPLETED
    assert done == [("reserve", first.id), ("release", first.id), ("reserve", second.id)]


def test_job_that_waits_for_a_key_holds_none(bench):
    """Two waiting jobs would otherwise wait for each other."""
    gate = [True]

    def run(context):
        if gate:
            context.pause("not yet", 10)

    runner = bench.runner(keyed(run))
    first, second, third = (runner.run(runner.add("job")).id for _ in range(3))
    gate.clear()
    assert [runner.run(each).status for each in (second, third, first)] == [
        JobStatus.PAUSED,
        JobStatus.PAUSED,
        JobStatus.COMPLETED,
    ]
    assert [runner.run(each).status for each in (second, third)] == [JobStatus.COMPLETED] * 2
