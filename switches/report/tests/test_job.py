"""The job of the weekly report: generated and sent once, wherever a worker dies."""

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.core.actors import system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import as_role
from controlplane.core.jobs import control, engine
from controlplane.core.jobs.models import Job, JobEffect
from controlplane.core.jobs.tests.house import LEASE_OVER, Died, Dying
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from switches.models import WeeklyReport
from switches.report import services
from switches.report.tests.house import DUE, MONDAY, WEEK, beat, began

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _somewhere(settings):
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")


def turn(now, probe=lambda _: None):
    return engine.run_tick("jobs.turn", now, probe)


def the_job():
    return Job.objects.get(kind="report")


def told_once():
    generated = AuditEntry.objects.filter(action="report.generated").count()
    sent = AuditEntry.objects.filter(action="report.sent").count()
    messages = OutboxMessage.objects.filter(event="report.ready").count()
    calls = Escalation.objects.filter(event="report.unsigned").count()
    return (generated, sent, messages, calls) == (1, 1, 1, 1)


def test_one_job_a_week_makes_it_and_tells_it():
    began(MONDAY)

    assert services.run_due(DUE) == 1
    assert services.run_due(DUE) == 0
    assert not WeeklyReport.objects.exists()
    turn(DUE)

    job = the_job()
    assert (job.key, job.subject, job.state) == (f"report:{WEEK}", f"report:{WEEK}", "completed")
    assert [step.name for step in job.steps.order_by("index")] == [
        "make", "make_teams", "tell_teams", "tell",
    ]  # fmt: skip
    assert JobEffect.objects.get().key == f"report:{job.pk}:3:tell"
    assert told_once()
    assert as_role("viewer").get(f"/jobs/{job.pk}/").json()["path"] == f"/reports/weekly/{WEEK}/"


@pytest.mark.parametrize("at", range(1, 23))
def test_wherever_a_worker_dies_it_is_made_and_told_once(at):
    began(MONDAY)
    services.run_due(DUE)
    probe = Dying(at)

    died = False
    try:
        turn(DUE, probe)
    except Died:
        died = True
    turn(DUE + LEASE_OVER)

    assert died == (at <= LAST_POINT), probe.points
    assert told_once(), probe.points[-1]
    assert the_job().state == "completed"


LAST_POINT = 21


def test_it_waits_an_hour_for_what_can_not_be_read_and_is_made_without(broken):
    began(MONDAY)
    beat(DUE)
    waiting = the_job()
    beat(DUE + HOUR - SECOND)

    assert waiting.state == "holding"
    assert "can't be read yet" in waiting.hold_reason
    assert not WeeklyReport.objects.exists()
    beat(DUE + HOUR + LEASE_OVER + LEASE_OVER)

    assert WeeklyReport.objects.get().final
    assert told_once()


def test_one_that_nobody_can_be_told_of_waits_and_lives(settings):
    settings.SLACK = replace(settings.SLACK, webhook_url="")
    began(MONDAY)

    for count in range(20):
        beat(DUE + count * 30 * SECOND)

    job = the_job()
    assert (job.state, job.heartbeat_at) == ("holding", DUE + 19 * 30 * SECOND)
    assert "No route reaches anyone" in job.hold_reason
    assert job.attempts == 4


def test_when_another_week_is_due_the_one_before_is_told_no_more(settings):
    settings.SLACK = replace(settings.SLACK, webhook_url="")
    began(MONDAY)
    beat(DUE)
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")

    beat(DUE + timedelta(weeks=1))

    outbox_messages = OutboxMessage.objects.filter(event="report.ready")
    assert [message.subject for message in outbox_messages] == ["report:2026-W48"]
    assert set(Job.objects.values_list("state", flat=True)) == {"completed"}


def test_one_that_failed_is_tried_again_after_an_hour():
    began(MONDAY)
    services.run_due(DUE)
    Job.objects.update(state="failed", finished_at=DUE, next_at=None)

    assert services.run_due(DUE + HOUR - SECOND) == 0
    assert services.run_due(DUE + HOUR) == 1
    turn(DUE + HOUR)

    keys = Job.objects.order_by("id").values_list("key", flat=True)
    assert list(keys) == [f"report:{WEEK}", f"report:{WEEK}:2"]
    assert told_once()


def test_one_that_somebody_cancelled_is_not_begun_again():
    began(MONDAY)
    services.run_due(DUE)
    control.intervene(
        job_id=the_job().pk, verb="cancel", reason="not this week", actor=system_actor("t"), now=DUE
    )

    assert [services.run_due(DUE + n * HOUR) for n in range(3)] == [0, 0, 0]
    turn(DUE + HOUR)
    assert not WeeklyReport.objects.exists()


def test_one_that_was_told_by_hand_is_told_no_second_time():
    began(MONDAY)
    services.generate_report(week=WEEK, actor=system_actor("shell"), now=DUE)
    services.send_report(week=WEEK, actor=system_actor("shell"), now=DUE)

    beat(DUE + SECOND)

    assert not Job.objects.exists()
    assert told_once()
