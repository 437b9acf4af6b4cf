"""Approvals of risky steps."""

import asyncio

import pytest

from switchgear.refusals import CircuitOpen
from switchgear.steps import (
    ApprovalState,
    Estimate,
    JobStatus,
    Risk,
    Step,
    StepStatus,
    risk_of,
)
from tests.steps.jobs import noted


def danger(**more):
    done = []
    step = Step(name="wipe", run=lambda context: done.append(1), tags=("irreversible",), **more)
    return step, done


@pytest.mark.parametrize(
    ("tags", "estimate", "risk"),
    [
        ((), Estimate(), Risk.LOW),
        (("financial",), Estimate(), Risk.HIGH),
        (("external_email",), Estimate(recipients=100), Risk.LOW),
        (("external_email",), Estimate(recipients=101), Risk.HIGH),
        (("other",), Estimate(recipients=1000), Risk.LOW),
        (("data_destructive",), Estimate(), Risk.CRITICAL),
        (("financial", "data_destructive"), Estimate(), Risk.CRITICAL),
        (("irreversible",), Estimate(), Risk.CRITICAL),
        ((), Estimate(cost_usd=50), Risk.LOW),
        ((), Estimate(cost_usd=50.01), Risk.HIGH),
        ((), Estimate(minutes=120), Risk.LOW),
        ((), Estimate(minutes=121), Risk.MEDIUM),
        (("financial",), Estimate(minutes=121), Risk.HIGH),
    ],
)
def test_risk_is_the_highest_of_all_rules(tags, estimate, risk):
    assert risk_of(tags, estimate) is risk


def test_job_pauses_until_a_person_says_yes(bench):
    step, done = danger(description="wipe the old index")
    runner = bench.runner(step)
    with noted() as entries:
        paused = runner.run(runner.add("job"))
        assert (paused.status, done) == (JobStatus.PAUSED, [])
        assert runner.run_due() == []

        assert runner.approve(paused.id, "wipe", by="kim")
        assert not runner.approve(paused.id, "wipe", by="lee")
        (job,) = runner.run_due()

    assert (job.status, done) == (JobStatus.COMPLETED, [1])
    (approval,) = runner.look(job.id).approvals
    assert (approval.description, approval.risk) == ("wipe the old index", "critical")
    assert (approval.state, approval.by) == (ApprovalState.GIVEN, "kim")
    assert "approval_requested" in [entry.name for entry in entries]


def test_step_that_is_declined_has_failed(bench):
    step, done = danger()
    runner = bench.runner(step)
    paused = runner.run(runner.add("job"))
    assert runner.decline(paused.id, "wipe")
    (job,) = runner.run_due()
    assert (job.status, done) == (JobStatus.FAILED, [])
    assert job.reason == "wipe: NotApproved: the step wipe was not approved"


def test_silence_is_a_no_in_the_end(bench):
    step, done = danger(approval_seconds=60)
    runner = bench.runner(step)
    paused = runner.run(runner.add("job"))
    bench.time.advance(59)
    assert runner.run_due() == []
    bench.time.advance(1)
    assert not runner.approve(paused.id, "wipe", by="too late")
    (job,) = runner.run_due()
    assert (job.status, done) == (JobStatus.FAILED, [])


@pytest.mark.parametrize("says", [True, False])
def test_hook_that_knows_decides_at_once(bench, says):
    step, done = danger()
    runner = bench.runner(step, approve=lambda question: says)
    job = runner.run(runner.add("job"))
    assert job.status is (JobStatus.COMPLETED if says else JobStatus.FAILED)
    assert done == ([1] if says else [])


def test_answer_between_question_and_pause_is_not_lost(bench):
    step, done = danger()

    def slow_hook(question):
        assert runner.approve(question.job_id, "wipe", by="quick")

    runner = bench.runner(step, approve=slow_hook)
    job = runner.run(runner.add("job"))
    assert job.status is JobStatus.PENDING
    (job,) = runner.run_due()
    assert (job.status, done) == (JobStatus.COMPLETED, [1])


def test_hook_may_be_a_coroutine_function(bench):
    step, done = danger()

    async def hook(question):
        await asyncio.sleep(0)
        return question.risk == "critical"

    runner = bench.runner(step, approve=hook)
    assert runner.run(runner.add("job")).status is JobStatus.COMPLETED
    assert asyncio.run(runner.arun(runner.add("job"))).status is JobStatus.COMPLETED
    assert done == [1, 1]


def test_runner_sets_the_risk_that_needs_approval(bench):
    asked = []

    def hook(question):
        asked.append(question.risk)
        return True

    steps = (
        Step(name="pay", run=print, tags=("financial",)),
        Step(name="long", run=print, estimate=lambda context: Estimate(minutes=context.input)),
        Step(name="free", run=print, tags=("irreversible",), needs_approval=False),
        Step(name="meek", run=print, needs_approval=True),
    )
    runner = bench.runner(*steps, approve=hook, approve_from=Risk.HIGH)
    runner.run(runner.add("job", 500))
    assert asked == ["high", "low"]


def test_step_asks_within_and_begins_again_with_the_answer(bench):
    begun = []

    def step(context):
        begun.append(context.attempt)
        if context.request_approval("send 5000 mails", 60):
            return "sent"
        return "not sent"

    runner = bench.runner(Step(name="mail", run=step))
    paused = runner.run(runner.add("job"))
    assert runner.look(paused.id).steps[0].status is StepStatus.PENDING
    runner.decline(paused.id, "mail")
    (job,) = runner.run_due()
    assert runner.look(job.id).steps[0].output == "not sent"
    assert begun == [1, 1]


@pytest.mark.parametrize("is_async", [False, True])
def test_failing_hook_is_called_again(bench, is_async):
    step, done = danger()
    undone, answers = [], [ConnectionError("the chat is down"), CircuitOpen("core->chat"), True]

    def hook(question):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def hook_async(question):
        return hook(question)

    first = Step(name="first", run=print, compensate=undone.append)
    runner = bench.runner(first, step, approve=hook_async if is_async else hook)
    paused = runner.run(runner.add("job"))
    assert paused.status is JobStatus.PAUSED
    assert "ConnectionError: the chat is down" in paused.reason
    (question,) = runner.look(paused.id).approvals
    assert question.state is ApprovalState.OPEN

    assert runner.run_due() == []
    bench.time.advance(60)
    assert runner.run_due()[0].status is JobStatus.PAUSED
    bench.time.advance(60)
    (job,) = runner.run_due()
    assert (job.status, done, undone) == (JobStatus.COMPLETED, [1], [])


def test_person_answers_where_the_hook_fails(bench):
    step, done = danger()

    def hook(question):
        raise ConnectionError("the chat is down")

    runner = bench.runner(step, approve=hook)
    paused = runner.run(runner.add("job"))
    assert runner.approve(paused.id, "wipe")
    assert runner.run_due()[0].status is JobStatus.COMPLETED
    assert done == [1]


@pytest.mark.parametrize("is_declined", [True, False])
def test_resumed_job_reopens_a_declined_approval(bench, is_declined):
    step, done = danger(approval_seconds=60)
    runner = bench.runner(step, on_failure="hold")
    held = runner.run(runner.add("job"))
    if is_declined:
        runner.decline(held.id, "wipe", by="kim")
    bench.time.advance(61)
    assert runner.run(held.id).status is JobStatus.FAILED
    assert not runner.approve(held.id, "wipe")

    asked = runner.resume(held.id)
    assert (asked.status, asked.resume_at) == (JobStatus.PAUSED, bench.time.wall() + 60)
    assert runner.approve(held.id, "wipe", by="lee")
    (job,) = runner.run_due()
    assert (job.status, done) == (JobStatus.COMPLETED, [1])
    (approval,) = runner.look(job.id).approvals
    assert (approval.state, approval.by) == (ApprovalState.GIVEN, "lee")


def test_decline_is_kept_when_the_step_failed_otherwise(bench):
    begun = []

    def step(context):
        begun.append(context.request_approval("send 5000 mails", 60))
        raise ValueError("broken")

    runner = bench.runner(Step(name="mail", run=step), on_failure="hold")
    paused = runner.run(runner.add("job"))
    runner.decline(paused.id, "mail")
    runner.run(paused.id)
    assert runner.resume(paused.id).status is JobStatus.FAILED
    assert begun == [False, False]


def test_decision_about_an_unknown_step_raises(bench):
    step, _ = danger()
    runner = bench.runner(step)
    paused = runner.run(runner.add("job"))
    for decide in (runner.approve, runner.decline):
        with pytest.raises(LookupError, match="has no step named wipes"):
            decide(paused.id, "wipes")
