"""Effects are recorded before and after, and not repeated."""

import pytest

from switchgear.patterns.idempotency import idempotency_key
from switchgear.refusals import BulkheadFull
from switchgear.steps import EffectState, JobStatus, Step
from tests.steps.jobs import Outside, noted


def test_effect_is_done_once_though_its_step_is_tried_again(bench):
    outside = Outside()

    def mail(context):
        receipt = context.once("email", "gateway", "mail-1", lambda: outside.send("mail-1"))
        assert context.was_recorded("email", "gateway", "mail-1")
        if context.attempt == 1:
            raise ValueError("after the mail was sent")
        return receipt

    runner = bench.runner(Step(name="mail", run=mail), on_failure="hold")
    failed = runner.run(runner.add("job"))
    with noted() as entries:
        done = runner.resume(failed.id)

    assert outside.sent == ["mail-1"]
    assert runner.look(done.id).steps[0].output == {"receipt": "r-mail-1"}
    assert [entry.fields["kind"] for entry in entries if entry.name == "effect_repeated"] == [
        "email"
    ]


def test_effect_entered_again_is_stopped_before_its_body(bench):
    outside = Outside()

    def mail(context):
        for _ in range(2):
            with context.effect("email", "gateway", "mail-1"):
                outside.send("mail-1")

    runner = bench.runner(Step(name="mail", run=mail), on_failure="hold")
    failed = runner.run(runner.add("job"))

    assert failed.reason == (
        "mail: EffectRepeated: the effect mail-1 is already done: "
        "check was_recorded() first, or use once()"
    )
    assert outside.sent == ["mail-1"]


def test_intent_is_kept_before_and_outcome_after(bench):
    seen = []

    def mail(context):
        with context.effect("email", "gateway", "mail-1", {"to": "kim"}) as effect:
            seen.append(context.effects()[0])
            effect.outcome = {"id": 7}
        seen.append(context.effects()[0])

    runner = bench.runner(Step(name="mail", run=mail))
    runner.run(runner.add("job"))

    assert [(row.state, row.details, row.outcome) for row in seen] == [
        (EffectState.UNKNOWN, {"to": "kim"}, None),
        (EffectState.DONE, {"to": "kim"}, {"id": 7}),
    ]


def test_body_that_fails_leaves_it_unknown_and_is_tried_with_the_same_key(bench):
    seen = []

    def mail(context):
        with context.effect("email", "gateway", "mail-1") as effect:
            seen.append((effect.is_unknown, idempotency_key()))
            if context.attempt == 1:
                raise TimeoutError("no answer")

    runner = bench.runner(Step(name="mail", run=mail), on_failure="hold")
    failed = runner.run(runner.add("job"))
    (unknown,) = runner.look(failed.id).unknown_effects
    assert unknown.error == "TimeoutError: no answer"
    done = runner.resume(failed.id)

    assert seen == [(False, "mail-1"), (True, "mail-1")]
    assert done.status is JobStatus.COMPLETED
    assert runner.look(done.id).unknown_effects == ()


@pytest.mark.parametrize("is_done", [True, False])
def test_unknown_effect_without_keys_waits_for_a_person(bench, is_done):
    outside = Outside()

    def ship(context):
        def act():
            outside.send("parcel")
            if context.attempt == 1:
                raise ConnectionError("lost")

        return context.once("parcel", "warehouse", "parcel", act, is_keyed=False)

    runner = bench.runner(Step(name="ship", run=ship), on_failure="hold")
    failed = runner.run(runner.add("job"))
    paused = runner.resume(failed.id)
    assert (paused.status, paused.resume_at) == (JobStatus.PAUSED, None)
    assert "check, then settle it" in paused.reason
    assert outside.sent == ["parcel"]

    assert runner.settle(paused.id, "parcel", is_done=is_done)
    assert not runner.settle(paused.id, "parcel", is_done=is_done)
    (done,) = runner.run_due()
    assert done.status is JobStatus.COMPLETED
    assert len(outside.sent) == (1 if is_done else 2)


def test_refused_call_was_certainly_not_made(bench):
    def mail(context):
        with context.effect("email", "gateway", "mail-1"):
            raise BulkheadFull("gateway", "queue is full")

    runner = bench.runner(Step(name="mail", run=mail))
    paused = runner.run(runner.add("job"))
    (row,) = runner.look(paused.id).effects
    assert (paused.status, row.state) == (JobStatus.PAUSED, EffectState.NOT_DONE)


def test_body_can_mark_the_effect_as_not_done(bench):
    def mail(context):
        with context.effect("email", "gateway", "mail-1") as effect:
            effect.not_done()
            raise ValueError("400 Bad Request")

    runner = bench.runner(Step(name="mail", run=mail), on_failure="hold")
    failed = runner.run(runner.add("job"))
    assert runner.look(failed.id).effects[0].state is EffectState.NOT_DONE


def test_invalid_outcome_raises_and_the_effect_is_done(bench):
    outside = Outside()

    def mail(context):
        def act():
            outside.send("mail-1")
            return object()

        return context.once("email", "gateway", "mail-1", act)

    runner = bench.runner(Step(name="mail", run=mail), on_failure="hold")
    failed = runner.run(runner.add("job"))
    assert "the outcome of email must be JSON" in failed.reason
    assert runner.resume(failed.id).status is JobStatus.COMPLETED
    assert outside.sent == ["mail-1"]


def test_effect_of_another_job_of_this_name_is_done_too(bench):
    outside = Outside()

    def mail(context):
        return context.once("email", "gateway", "mail-1", lambda: outside.send("mail-1"))

    runner = bench.runner(Step(name="mail", run=mail))
    for _ in range(2):
        job = runner.run(runner.add("job"))
        assert runner.look(job.id).steps[0].output == {"receipt": "r-mail-1"}
    assert outside.sent == ["mail-1"]
