"""Compensation in reverse order; failures are left to people."""

from switchgear.failures.classification import Catastrophic
from switchgear.refusals import CircuitOpen
from switchgear.steps import EffectState, JobStatus, Step, StepStatus
from tests.steps.jobs import Outside, noted


def fail(context):
    raise ValueError("no such order")


def doing(outside, name, undo=None):
    def run(context):
        return context.once(name, "there", f"do-{name}", lambda: outside.send(f"do-{name}"))

    def compensate(context):
        assert context.output == {"receipt": f"r-do-{name}"}
        context.once(name, "there", f"undo-{name}", lambda: outside.send(f"undo-{name}"))

    return Step(name=name, run=run, compensate=undo or compensate)


def test_steps_are_undone_in_reverse_order(bench):
    outside = Outside()
    steps = doing(outside, "a"), doing(outside, "b"), Step(name="c", run=fail)
    runner = bench.runner(*steps)
    with noted() as entries:
        job = runner.run(runner.add("job"))

    assert outside.sent == ["do-a", "do-b", "undo-b", "undo-a"]
    progress = runner.look(job.id)
    assert (job.status, job.is_compensating) == (JobStatus.FAILED, True)
    assert [row.status for row in progress.steps] == [
        StepStatus.COMPENSATED,
        StepStatus.COMPENSATED,
        StepStatus.FAILED,
    ]
    states = {row.key: row.state for row in progress.effects}
    assert states == {
        "do-a": EffectState.UNDONE,
        "do-b": EffectState.UNDONE,
        "undo-a": EffectState.DONE,
        "undo-b": EffectState.DONE,
    }
    names = [entry.name for entry in entries if entry.name.startswith(("step_c", "job"))]
    assert names == ["step_compensated", "step_compensated", "job_failed"]


def test_failing_compensation_is_reported_and_the_others_go_on(bench):
    outside = Outside()
    steps = doing(outside, "a"), doing(outside, "b", undo=fail), Step(name="c", run=fail)
    runner = bench.runner(*steps)
    with noted() as entries:
        job = runner.run(runner.add("job"))

    assert outside.sent == ["do-a", "do-b", "undo-a"]
    row = runner.look(job.id).steps[1]
    assert (row.status, row.error) == (
        StepStatus.COMPENSATION_FAILED,
        "ValueError: no such order",
    )
    assert [e.fields["step"] for e in entries if e.name == "compensation_failed"] == ["b"]


def test_compensation_that_is_refused_goes_on_later(bench):
    outside = Outside()
    refusals = [CircuitOpen("core->bank", 5.0)]

    def undo(context):
        if refusals:
            raise refusals.pop()
        outside.send("undo-b")

    steps = doing(outside, "a"), doing(outside, "b", undo=undo), Step(name="c", run=fail)
    runner = bench.runner(*steps)
    paused = runner.run(runner.add("job"))
    assert (paused.status, paused.is_compensating) == (JobStatus.PAUSED, True)
    bench.time.advance(5)
    (job,) = runner.run_due()

    assert job.status is JobStatus.FAILED
    assert outside.sent == ["do-a", "do-b", "undo-b", "undo-a"]


def test_step_that_failed_after_an_effect_is_undone_too(bench):
    seen = []

    def run(context):
        with context.effect("payment", "bank", "pay-1"):
            raise TimeoutError("no answer")

    def undo(context):
        seen.append([(row.key, row.state) for row in context.effects()])

    clean = Step(name="clean", run=lambda context: None, compensate=lambda context: None)
    runner = bench.runner(clean, Step(name="pay", run=run, compensate=undo))
    job = runner.run(runner.add("job"))

    assert seen == [[("pay-1", EffectState.UNKNOWN)]]
    assert [row.status for row in runner.look(job.id).steps] == [StepStatus.COMPENSATED] * 2


def test_effect_without_compensation_is_noted(bench):
    outside = Outside()

    def mail(context):
        context.once("email", "gateway", "mail", lambda: outside.send("mail"))

    runner = bench.runner(Step(name="mail", run=mail), Step(name="c", run=fail))
    with noted() as entries:
        job = runner.run(runner.add("job"))
    assert [e.fields["step"] for e in entries if e.name == "compensation_missing"] == ["mail"]
    assert runner.look(job.id).steps[0].status is StepStatus.SUCCEEDED


def test_undone_step_and_effect_are_done_again_by_the_next_job(bench):
    outside, is_broken = Outside(), [True]

    def run(context):
        return context.once("a", "there", "do-a", lambda: outside.send("do-a"))

    def then(context):
        if is_broken:
            raise ValueError("broken")

    first = Step(
        name="a", run=run, idempotency_key=lambda context: "a", compensate=lambda context: None
    )
    runner = bench.runner(first, Step(name="then", run=then))
    assert runner.run(runner.add("job")).status is JobStatus.FAILED
    is_broken.clear()
    assert runner.run(runner.add("job")).status is JobStatus.COMPLETED
    assert outside.sent == ["do-a", "do-a"]


def test_output_taken_from_another_job_is_not_undone(bench):
    undone = []
    first = Step(
        name="a",
        run=lambda context: "made",
        idempotency_key=lambda context: "a",
        compensate=lambda context: undone.append(context.job_id),
    )

    def then(context):
        if context.input == "broken":
            raise ValueError("broken")

    runner = bench.runner(first, Step(name="then", run=then))
    runner.run(runner.add("job"))
    runner.run(runner.add("job", "broken"))
    assert undone == []


def test_compensated_output_stays_with_its_user(bench):
    made = []

    def make(context):
        made.append(context.input)
        return "made"

    def then(context):
        if context.input == "broken":
            raise ValueError("broken")

    first = Step(
        name="a", run=make, idempotency_key=lambda context: "a", compensate=lambda context: None
    )
    runner = bench.runner(first, Step(name="then", run=then), on_failure="hold")
    origin = runner.run(runner.add("job", "broken"))
    runner.run(runner.add("job", "takes it"))
    runner.compensate(origin.id)
    runner.run(runner.add("job", "makes it anew"))
    assert made == ["broken", "makes it anew"]


def test_held_job_is_compensated_by_a_person_and_then_not_resumed(bench):
    outside = Outside()
    runner = bench.runner(doing(outside, "a"), Step(name="c", run=fail), on_failure="hold")
    held = runner.run(runner.add("job"))
    assert outside.sent == ["do-a"]

    undone = runner.compensate(held.id)
    assert (undone.status, undone.is_compensating) == (JobStatus.FAILED, True)
    assert runner.resume(held.id) == undone
    assert outside.sent == ["do-a", "undo-a"]


def test_catastrophe_is_held_for_people(bench):
    outside = Outside()

    def leak(context):
        raise Catastrophic("a customer's data")

    runner = bench.runner(doing(outside, "a"), Step(name="leak", run=leak))
    with noted() as entries:
        job = runner.run(runner.add("job"))
    assert (job.status, job.is_compensating) == (JobStatus.FAILED, False)
    assert outside.sent == ["do-a"]
    assert "failure_catastrophic" in [entry.name for entry in entries]
