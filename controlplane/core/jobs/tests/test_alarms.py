"""Alarms of figures that are beyond their limit: one each, until they are well below it again."""

import pytest

from controlplane.core import ticks
from controlplane.core.jobs import alarms, figures
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.jobs.stepwise import StepKind, StepPassed
from controlplane.core.jobs.tests.house import DAY, NOW, SECOND, begin, ended, list_messages
from controlplane.core.outbox import renderer
from controlplane.core.outbox.escalation import Escalation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("somewhere")]
LAST_WEEKS = NOW - 10 * DAY
LATELY = NOW - DAY / 2


@pytest.fixture(autouse=True)
def _kind(given):
    given(StepKind("make", lambda *_: StepPassed()))


def steps(*, passed=0, failed=0, attempts=1, at=LATELY, name="make", compensated=0):
    """Steps that ended then, each of a job of its own."""
    (job,) = ended(1, at=at)
    given = [("passed", passed), ("failed", failed), ("compensated", compensated)]
    first = job.steps.count()
    states = [state for state, count in given for _ in range(count)]
    JobStep.objects.bulk_create(
        JobStep(job=job, index=first + n, name=name, state=state, attempts=attempts, finished_at=at)
        for n, state in enumerate(states)
    )
    return job


def ringing():
    return set(Escalation.objects.filter(closed_at=None).values_list("subject", flat=True))


def test_a_step_that_fails_more_than_three_times_in_ten_is_told():
    steps(passed=7, failed=3)
    assert alarms.update_alarms(NOW) == 0

    steps(failed=1)
    assert alarms.update_alarms(NOW) == 1

    (call,) = Escalation.objects.all()
    assert (call.subject, call.severity) == ("jobs:failures:test:make", "warning")
    notice = renderer.render(call.event, call.facts)
    assert notice.title == "The step make of Test job failed 4 of 11 times in 24 h (limit 30 %)"
    assert notice.path == "/jobs/?kind=test"
    assert alarms.update_alarms(NOW) == 0


def test_of_few_nothing_is_said():
    steps(passed=2, failed=7, attempts=5)

    assert alarms.update_alarms(NOW) == 0


def test_a_step_that_failed_and_was_taken_back_has_failed():
    for _ in range(5):
        job = steps(compensated=2)
        Job.objects.filter(pk=job.pk).update(state="failed", step_index=1)

    (found,) = figures.measure_steps(NOW)

    assert (found.ended, found.failed) == (10, 5)


def test_it_is_over_well_below_the_limit_and_not_just_below():
    steps(passed=6, failed=4)
    alarms.update_alarms(NOW)

    steps(passed=5)  # 4 of 15: 27 %.
    assert alarms.update_alarms(NOW) == 0
    steps(passed=2)  # 4 of 17: 24 %.
    assert alarms.update_alarms(NOW + SECOND) == 1

    assert ringing() == set()
    (message,) = list_messages("jobs.alarm_over")
    assert message.subject == "jobs:failures:test:make"
    title = renderer.render(message.event, message.payload).title
    assert title.startswith("Resolved: The step make")


def test_it_is_over_when_nothing_ended_for_a_day():
    steps(failed=10)
    alarms.update_alarms(NOW)

    assert alarms.update_alarms(NOW + DAY) == 1
    assert ringing() == set()


def test_it_stays_while_too_few_ended_to_tell():
    steps(failed=10, at=NOW - DAY + SECOND)
    steps(passed=3, at=NOW)
    alarms.update_alarms(NOW)

    assert alarms.update_alarms(NOW + 2 * SECOND) == 0
    assert ringing() == {"jobs:failures:test:make"}


def test_two_attempts_on_average_are_allowed_and_more_are_told():
    steps(passed=10, attempts=2)
    assert alarms.update_alarms(NOW) == 0

    steps(passed=1, attempts=3)
    assert alarms.update_alarms(NOW) == 1

    assert ringing() == {"jobs:attempts:test:make"}
    steps(passed=4, attempts=1)
    assert alarms.update_alarms(NOW) == 0  # 1.8 on average: not well below it.
    steps(passed=4, attempts=1)
    assert alarms.update_alarms(NOW) == 1
    assert ringing() == set()


def test_a_subject_fits_a_button_whatever_a_step_is_called():
    steps(failed=10, name="5 %" + "é" * 57)
    alarms.update_alarms(NOW)

    (subject,) = ringing()
    assert subject.startswith("jobs:failures:test:5%20%25%C3")
    assert subject.isascii()
    assert len(subject) <= 120


@pytest.mark.parametrize(("seconds", "rings"), [(20, False), (21, True)])
def test_a_p95_of_more_than_twice_the_usual_is_told(seconds, rings):
    ended(40, at=LAST_WEEKS, seconds=10)
    ended(40, at=LATELY, seconds=seconds)

    assert alarms.update_alarms(NOW) == rings
    assert ringing() == ({"jobs:duration:test"} if rings else set())


def test_the_slowest_twentieth_is_what_counts():
    ended(40, at=LAST_WEEKS, seconds=10)
    ended(36, at=LATELY, seconds=5)
    ended(4, at=LATELY, seconds=60)

    (found,) = figures.measure_durations(NOW)

    assert (found.usual_seconds, found.recent_seconds) == (10, 60)
    assert alarms.update_alarms(NOW) == 1


@pytest.mark.parametrize(("before", "lately"), [(19, 40), (40, 19)])
def test_of_fewer_than_twenty_on_either_side_no_usual_is_known(before, lately):
    ended(before, at=LAST_WEEKS, seconds=10)
    ended(lately, at=LATELY, seconds=100)

    assert alarms.update_alarms(NOW) == 0


def test_the_usual_is_that_of_weeks_ago_and_of_jobs_that_went_well():
    ended(40, at=LAST_WEEKS, seconds=10)
    ended(40, at=NOW - 31 * DAY, seconds=1000)
    ended(40, at=NOW - 3 * DAY, seconds=1000)
    ended(40, at=LAST_WEEKS, seconds=1000, state="cancelled")
    ended(40, at=LATELY, seconds=30)

    (found,) = figures.measure_durations(NOW)

    assert (found.usual_seconds, found.usual, found.recent) == (10, 40, 40)
    assert ringing() == set()
    alarms.update_alarms(NOW)
    assert ringing() == {"jobs:duration:test"}


def test_a_checkpoint_above_ten_kilobytes_is_told_while_its_job_lives():
    job = begin()
    Job.objects.filter(pk=job.pk).update(checkpoint={"at": 1}, checkpoint_bytes=10 * 1024)
    assert alarms.update_alarms(NOW) == 0

    Job.objects.filter(pk=job.pk).update(checkpoint_bytes=10 * 1024 + 1)
    assert alarms.update_alarms(NOW) == 1
    assert "10,241 bytes" in Escalation.objects.get().facts["said"]

    Job.objects.filter(pk=job.pk).update(checkpoint=None)
    assert alarms.update_alarms(NOW) == 1
    assert ringing() == set()


def test_the_tick_is_registered():
    assert ticks.list_ticks()["jobs.alarms"].seconds == 60
    assert ticks.list_ticks()["jobs.watch"].seconds == 15
    assert (ticks.list_ticks()["jobs.turn"].seconds, ticks.list_ticks()["jobs.turn"].queue) == (
        1,
        "jobs",
    )
