"""A job resumes where it was: steps are not repeated, checkpoints and outputs are kept."""

import pytest

from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry
from switchgear.refusals import CircuitOpen
from switchgear.steps import Job, JobStatus, JobTaken, PlanChanged, Runner, Step, StepStatus
from tests.steps.jobs import noted


def test_steps_run_in_order_with_earlier_outputs(bench):
    first = Step(name="first", run=lambda context: context.input["n"] + 1)
    second = Step(name="second", run=lambda context: context.outputs["first"] * 10)
    runner = bench.runner(first, second)

    with noted() as entries:
        job = runner.run(runner.add("job", {"n": 1}, tenant="acme", user="kim"))

    assert job.status is JobStatus.COMPLETED
    assert [row.output for row in runner.look(job.id).steps] == [2, 20]
    names = [entry.name for entry in entries]
    assert names == ["step_succeeded", "step_succeeded", "job_completed"]


def test_job_that_failed_is_resumed_at_its_step_with_the_last_checkpoint(bench):
    runs = []

    def bulk(context):
        start = context.previous_checkpoint["done"] if context.previous_checkpoint else 0
        runs.append((context.attempt, start))
        for n in range(start, 10):
            if n == 7 and context.attempt == 1:
                raise ValueError("stuck at 7")
            if n % 3 == 2:
                context.save_checkpoint({"done": n + 1})
        return "all"

    begun = []
    steps = Step(name="begin", run=lambda context: begun.append(1)), Step(name="bulk", run=bulk)
    runner = bench.runner(*steps, on_failure="hold")

    failed = runner.run(runner.add("job"))
    assert (failed.status, failed.current) == (JobStatus.FAILED, 1)
    assert failed.reason == "bulk: ValueError: stuck at 7"
    assert runner.run(failed.id).status is JobStatus.FAILED
    done = runner.resume(failed.id)

    assert done.status is JobStatus.COMPLETED
    assert runs == [(1, 0), (2, 6)]
    assert begun == [1]


def test_try_again_has_the_checkpoint_and_counts(bench):
    seen = []

    def flaky(context):
        seen.append((context.attempt, context.previous_checkpoint))
        context.save_checkpoint(len(seen))
        if len(seen) < 3:
            raise ConnectionError("away")
        return "done"

    retry = Retry("job", RetryParameters(attempts=3), sleep=lambda seconds: None)
    runner = bench.runner(Step(name="flaky", run=flaky, retry=retry))

    job = runner.run(runner.add("job"))

    assert job.status is JobStatus.COMPLETED
    assert seen == [(1, None), (2, 1), (3, 2)]
    assert runner.look(job.id).steps[0].attempts == 3


def test_same_key_of_the_same_job_takes_the_output(bench):
    made = []

    def make(context):
        made.append(context.input)
        return f"made {context.input}"

    step = Step(name="make", run=make, idempotency_key=lambda context: f"make:{context.input}")
    other = Runner(bench.store, [Job("other", (step,))], clock=bench.time.wall)
    runner = bench.runner(step)
    for value in ("a", "b", "a"):
        last = runner.run(runner.add("job", value))
    elsewhere = other.run(other.add("other", "a"))

    assert made == ["a", "b", "a"]
    row = runner.look(last.id).steps[0]
    assert (row.output, row.is_reused, row.attempts) == ("made a", True, 0)
    assert not other.look(elsewhere.id).steps[0].is_reused


def test_refusal_pauses_the_job_and_is_no_failure(bench):
    answers = [CircuitOpen("core->oracle", 12.0), "done"]
    compensated = []

    def ask(context):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return (answer, context.attempt)

    runner = bench.runner(Step(name="ask", run=ask, compensate=compensated.append))
    paused = runner.run(runner.add("job"))

    assert (paused.status, paused.resume_at) == (JobStatus.PAUSED, bench.time.wall() + 12)
    assert runner.look(paused.id).steps[0].status is StepStatus.PENDING
    assert runner.run_due() == []
    bench.time.advance(12)
    (done,) = runner.run_due()
    assert done.status is JobStatus.COMPLETED
    assert runner.look(done.id).steps[0].output == ["done", 1]
    assert compensated == []


def test_step_that_pauses_goes_on_when_a_person_runs_it(bench):
    def wait(context):
        if context.previous_checkpoint is None:
            context.save_checkpoint("asked")
            context.pause("the other side has to answer")
        return "gone on"

    runner = bench.runner(Step(name="wait", run=wait))
    paused = runner.run(runner.add("job"))
    bench.time.advance(1e6)

    assert (paused.status, paused.resume_at) == (JobStatus.PAUSED, None)
    assert runner.run_due() == []
    assert runner.run(paused.id).status is JobStatus.COMPLETED


def test_job_at_hand_is_not_run_by_another(bench):
    inner = []

    def nested(context):
        with pytest.raises(JobTaken):
            runner.run(context.job_id)
        inner.append(runner.run_due())

    runner = bench.runner(Step(name="nested", run=nested))
    assert runner.run(runner.add("job")).status is JobStatus.COMPLETED
    assert inner == [[]]


def test_step_that_kills_its_workers_fails_in_the_end(bench):
    def deadly(context):
        raise SystemExit(9)

    runner = bench.runner(Step(name="deadly", run=deadly, max_attempts=3))
    job_id = runner.add("job")
    for _ in range(3):
        with pytest.raises(SystemExit):
            runner.run(job_id)
        assert runner.look(job_id).job.status is JobStatus.PENDING

    (failed,) = runner.run_due()
    assert failed.status is JobStatus.FAILED
    assert "was tried 3 times" in failed.reason


def test_id_given_twice_is_one_job(bench):
    runner = bench.runner(Step(name="only", run=lambda context: context.input))
    assert runner.add("job", 1, job_id="nightly") == "nightly"
    runner.run("nightly")
    assert runner.add("job", 2, job_id="nightly") == "nightly"

    assert runner.run("nightly").input == 1


def test_changed_steps_are_refused(bench):
    job_id = bench.runner(Step(name="old", run=print)).add("job")
    changed = bench.runner(Step(name="new", run=print))

    with pytest.raises(PlanChanged, match="finish it with"):
        changed.run(job_id)
    assert changed.run_due() == []
    assert changed.look(job_id).job.status is JobStatus.PENDING


def test_value_that_is_no_json_raises(bench):
    runner = bench.runner(Step(name="bad", run=lambda context: object()))
    with pytest.raises(TypeError, match="input of a job must be JSON"):
        runner.add("job", {1, 2})
    failed = runner.run(runner.add("job"))
    assert failed.reason.startswith("bad: TypeError: the output of bad must be JSON")


def test_large_checkpoint_is_noted_without_its_content(bench):
    runner = bench.runner(
        Step(name="large", run=lambda context: context.save_checkpoint("secret" * 2000))
    )
    with noted() as entries:
        runner.run(runner.add("job"))
    (large,) = [entry for entry in entries if entry.name == "checkpoint_large"]
    assert large.fields["bytes"] == 12_002
    assert "secret" not in repr(entries)
    assert "secret" not in repr(runner.look(large.fields["job"]))


def test_unknown_jobs_raise(bench):
    runner = bench.runner(Step(name="only", run=print))
    with pytest.raises(LookupError, match="no job named other"):
        runner.add("other")
    with pytest.raises(LookupError, match="no job nothing"):
        runner.run("nothing")


def test_job_of_a_dead_worker_is_taken_over_and_noted(bench):
    runner = bench.runner(Step(name="only", run=lambda context: "done"))
    job_id = runner.add("job")
    bench.store.claim(job_id, "dead", bench.time.wall(), 300.0, also_failed=False)
    bench.time.advance(299)
    assert runner.run_due() == []
    bench.time.advance(1)
    with noted() as entries:
        (job,) = runner.run_due()
    assert job.status is JobStatus.COMPLETED
    (stuck,) = [entry for entry in entries if entry.name == "job_stuck"]
    assert stuck.fields == {"job": job_id, "silent_seconds": 300.0}


def test_journal_has_the_figures_of_steps_and_jobs(bench):
    calls = []

    def slow(context):
        bench.time.advance(5)
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("away")

    retry = Retry("job", RetryParameters(attempts=2), sleep=lambda seconds: None)
    runner = bench.runner(Step(name="slow", run=slow, retry=retry))
    with noted() as entries:
        job = runner.run(runner.add("job"))
    told = {entry.name: entry.fields for entry in entries if entry.about == "job"}
    assert told["step_succeeded"] == {
        "job": job.id, "step": "slow", "attempts": 2, "seconds": 10.0,
    }  # fmt: skip
    assert told["job_completed"] == {"job": job.id, "seconds": 10.0}
