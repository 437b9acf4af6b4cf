"""A turn of the engine: what fails keeps nothing else, and a key begins one job."""

import pytest

from controlplane.core.jobs import control, engine
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.stepwise import StepKind, StepPassed
from controlplane.core.jobs.tests.house import ACTOR, NOW, TICK, begin, turn

pytestmark = pytest.mark.django_db


def passing():
    return StepKind("one", lambda *_: StepPassed())


def test_one_job_that_cannot_go_on_does_not_keep_the_others(given):
    given(passing())
    broken, well = begin(), begin()
    Job.objects.filter(pk=broken.pk).update(step_index=5)

    with pytest.raises(ExceptionGroup, match="could not continue"):
        turn()

    assert Job.objects.get(pk=well.pk).state == "completed"
    assert Job.objects.get(pk=broken.pk).lease_until is None


def test_one_kind_that_fails_does_not_keep_the_others(given):
    def broken(*_):
        raise RuntimeError("a mistake of ours")

    given(work=broken, name="broken")
    given(passing())
    begin(kind="broken")
    well = begin()

    with pytest.raises(ExceptionGroup):
        turn()

    assert Job.objects.get(pk=well.pk).state == "completed"


def test_a_kind_whose_jobs_take_long_claims_few_at_a_time(given, believed_empty):
    given(passing(), most=2)
    begin()
    believed_empty(Job)
    for _ in range(3):
        begin()

    assert engine.run_tick(TICK, NOW) == 2
    assert engine.run_tick(TICK, NOW) == 1


def test_a_key_that_was_used_once_begins_no_second_job(given):
    given(passing())
    begin(key="report:2026-W47")

    again = control.create_job(
        kind="test",
        key="report:2026-W47",
        subject="x",
        steps=[control.PlannedStep("one")],
        reason="",
        actor=ACTOR,
        now=NOW,
    )

    assert again is None
    assert Job.objects.count() == 1
