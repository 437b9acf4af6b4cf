"""Text that can't be stored raises early, or is escaped if it comes from others."""

import sqlite3

import pytest

from switchgear.steps import Context, Job, JobStatus, NotKept, Step
from switchgear.steps.step_writer import call_store

HALF = "\udcff"


@pytest.mark.parametrize(("name", "error"), [(HALF, ValueError), ("", ValueError), (7, TypeError)])
def test_names_are_looked_at_early(bench, name, error):
    step = Step(name="step", run=print)
    with pytest.raises(error, match="the name of a job must"):
        Job(name, (step,))
    with pytest.raises(error, match="the name of a step must"):
        Job("job", (Step(name=name, run=print),))
    with pytest.raises(error, match="the id of a job must"):
        bench.runner(step).add("job", job_id=name)
    if name != "":
        with pytest.raises(error, match="the user of a job must"):
            bench.runner(step).add("job", user=name)


def test_error_with_half_a_pair_fails_its_step_at_once(bench):
    tries = []

    def run(context):
        tries.append(1)
        raise ValueError(f"bad {HALF} file")

    runner = bench.runner(Step(name="step", run=run))
    job = runner.run(runner.add("job"))
    assert (job.status, tries) == (JobStatus.FAILED, [1])
    assert job.reason == r"step: ValueError: bad \udcff file"


@pytest.mark.parametrize("key", [HALF, "", None, 7])
def test_key_that_is_none_fails_its_step(bench, key):
    done = []
    runner = bench.runner(
        Step(name="a", run=lambda context: done.append(1), idempotency_key=lambda context: key)
    )
    job = runner.run(runner.add("job"))
    assert (job.status, done) == (JobStatus.FAILED, [])
    assert "the idempotency key of a must" in job.reason


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("word", [HALF, "", None])
def test_effect_that_has_no_name_is_not_begun(bench, place, word):
    def run(context: Context):
        words = ["kind", "target", "key"]
        words[place] = word
        with context.effect(*words):
            pytest.fail("without an intent")

    runner = bench.runner(Step(name="a", run=run))
    job = runner.run(runner.add("job"))
    assert job.status is JobStatus.FAILED
    assert " of an effect must" in job.reason


def test_words_that_no_store_can_keep_are_not_its_failure():
    def ask(word):
        with sqlite3.connect(":memory:") as connection:
            connection.execute("SELECT ?", (word,))

    with pytest.raises(UnicodeEncodeError):
        call_store(ask, HALF)
    with pytest.raises(NotKept):
        call_store(lambda: sqlite3.connect(":memory:").execute("nonsense"))
