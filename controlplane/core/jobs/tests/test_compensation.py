"""Taking back what was done: the last first, once each, and a person if it can't be."""

from datetime import timedelta

import pytest

from controlplane.core.jobs import attention
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.stepwise import StepKind, StepPassed
from controlplane.core.jobs.tests.house import (
    LEASE_OVER,
    MINUTE,
    NOW,
    SECOND,
    Died,
    audited,
    begin,
    list_messages,
    turn,
)
from controlplane.core.outbox import renderer
from controlplane.core.outbox.escalation import Escalation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("somewhere")]
HALF_A_MINUTE = timedelta(seconds=30)


@pytest.fixture
def undone():
    """The names of steps that were taken back, in order."""
    return []


def step(name, undone, *, fails=False, refuses=None):
    def run(*_):
        if fails:
            raise ValueError(f"{name} went wrong")
        return StepPassed()

    def compensate(turn, step, now):
        if refuses:
            raise RuntimeError(refuses[-1])
        undone.append(name)

    return StepKind(name, run, compensate, most_attempts=1)


def states(job):
    return [step.state for step in job.steps.order_by("index")]


def test_a_job_that_fails_takes_back_what_it_did_the_last_first(given, undone):
    given(
        step("one", undone), step("two", undone), step("three", undone, fails=True),
        step("four", undone),
    )  # fmt: skip
    job = begin("one", "two", "three", "four")

    turn()

    job.refresh_from_db()
    assert undone == ["three", "two", "one"]
    assert states(job) == ["compensated", "compensated", "compensated", "pending"]
    assert (job.state, job.compensated_at, job.next_at) == ("failed", NOW, None)
    assert audited() == ["job.failed"]
    (message,) = list_messages("job.failed")
    notice = renderer.render(message.event, message.payload)
    assert notice.title == f"Test job {job.pk} has failed and is being rolled back"
    assert ("Why", "ValueError: three went wrong") in notice.lines
    assert turn(NOW + MINUTE) == 0


def test_what_can_not_be_taken_back_calls_a_person_once_and_is_tried_for_as_long_as_it_takes(
    given, undone
):
    refuses = ["the door is shut"]
    given(step("one", undone, refuses=refuses), step("two", undone, fails=True))
    job = begin("one", "two")

    for count in range(4):
        turn(NOW + count * HALF_A_MINUTE)

    standing = Job.objects.get(pk=job.pk)
    assert (standing.state, standing.compensated_at) == ("failed", None)
    assert standing.compensation_failed_at == NOW
    assert states(job) == ["passed", "compensated"]
    assert audited() == ["job.failed", "job.compensation_failed"]
    assert len(list_messages("job.compensation_failed")) == 1
    (call,) = Escalation.objects.all()
    assert (call.subject, call.severity) == (f"job:{job.pk}", "critical")
    (waiting,) = attention.list_failed_compensations(NOW + MINUTE)
    assert (waiting.severity, waiting.path) == ("critical", f"/jobs/{job.pk}/")

    refuses.clear()
    turn(NOW + 4 * HALF_A_MINUTE)

    job.refresh_from_db()
    assert (undone, states(job)) == (["two", "one"], ["compensated", "compensated"])
    assert job.compensated_at == NOW + 4 * HALF_A_MINUTE
    assert not Escalation.objects.filter(closed_at=None).exists()
    assert attention.list_failed_compensations(NOW + 3 * MINUTE) == []


def test_a_worker_that_dies_before_it_took_anything_back_is_followed(given, undone):
    given(step("one", undone), step("two", undone, fails=True))
    job = begin("one", "two")
    Job.objects.filter(pk=job.pk).update(state="failed", finished_at=NOW, step_index=1)
    job.steps.filter(index=0).update(state="passed")
    job.steps.filter(index=1).update(state="failed")

    turn(NOW + LEASE_OVER)

    assert undone == ["two", "one"]
    assert Job.objects.get(pk=job.pk).compensated_at is not None


def test_a_worker_that_dies_while_taking_back_is_followed(given, undone):
    deaths = [1]

    def compensate(turn, step, now):
        if deaths:
            deaths.clear()
            raise Died("in the middle")
        undone.append("one")

    given(StepKind("one", lambda *_: StepPassed(), compensate), step("two", undone, fails=True))
    job = begin("one", "two")
    with pytest.raises(Died):
        turn()

    turn(NOW + LEASE_OVER)

    assert undone == ["two", "one"]
    assert Job.objects.get(pk=job.pk).state == "failed"


def test_a_call_about_a_stuck_job_gives_way_to_one_about_what_was_not_taken_back(given, undone):
    given(step("one", undone, refuses=["no"]), step("two", undone, fails=True))
    job = begin("one", "two")
    Escalation.objects.create(
        subject=f"job:{job.pk}", event="job.stuck", severity="critical", opened_at=NOW, next_at=NOW
    )

    turn(NOW + SECOND)

    (call,) = Escalation.objects.filter(closed_at=None)
    assert call.event == "job.compensation_failed"
