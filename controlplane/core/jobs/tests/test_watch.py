"""Jobs that nobody works on: found by their silence, told once, and told again when they go on."""

import json
from dataclasses import replace

import pytest

from controlplane.core import ticks
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.escalations import services as escalation
from controlplane.core.jobs import attention, stuck_jobs
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.resources import job_resource
from controlplane.core.jobs.stepwise import StepKind, StepPassed
from controlplane.core.jobs.tests.house import (
    ACTOR,
    DAY,
    MINUTE,
    NOW,
    SECOND,
    audited,
    begin,
    list_messages,
    turn,
)
from controlplane.core.models import Tick
from controlplane.core.outbox import renderer
from controlplane.core.outbox.escalation import Escalation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("somewhere")]
LATER = NOW + 5 * MINUTE + SECOND


@pytest.fixture(autouse=True)
def _kind(given):
    given(StepKind("one", lambda *_: StepPassed()))


def silent(**more):
    job = begin()
    Job.objects.filter(pk=job.pk).update(**{"heartbeat_at": NOW, "worker": "web-1:77", **more})
    return job


def test_five_minutes_of_silence_is_not_stuck_and_more_is():
    job = silent()

    assert stuck_jobs.escalate_stuck_jobs(NOW + 5 * MINUTE) == 0
    assert stuck_jobs.escalate_stuck_jobs(LATER) == 1

    job.refresh_from_db()
    assert job.stuck_at == LATER


def test_it_is_told_once_with_where_it_stood():
    job = silent()

    for count in range(3):
        stuck_jobs.escalate_stuck_jobs(LATER + count * 15 * SECOND)

    (message,) = list_messages("job.stuck")
    notice = renderer.render(message.event, message.payload)
    assert (message.severity, message.subject) == ("critical", f"job:{job.pk}")
    assert notice.title == f"Test job {job.pk} is stuck: no worker is running it"
    assert ("Last heartbeat", "2026-11-21 02:11:00 UTC") in notice.lines
    assert ("Last worker", "web-1:77") in notice.lines
    assert notice.path == f"/jobs/{job.pk}/"
    (call,) = Escalation.objects.all()
    assert (call.subject, call.severity, call.notified_at) == (f"job:{job.pk}", "critical", LATER)
    (entry,) = AuditEntry.objects.all()
    assert (entry.action, entry.target) == ("job.stuck", "segment:finance")


def test_without_anywhere_to_tell_it_the_escalation_knows_that(settings):
    silent()
    settings.SLACK = replace(settings.SLACK, webhook_url="")

    stuck_jobs.escalate_stuck_jobs(LATER)

    assert Escalation.objects.get().notified_at is None


def test_one_that_beats_again_is_well_and_that_is_told():
    job = silent()
    stuck_jobs.escalate_stuck_jobs(LATER)

    turn(LATER + SECOND)
    assert stuck_jobs.escalate_stuck_jobs(LATER + 2 * SECOND) == 1
    assert stuck_jobs.escalate_stuck_jobs(LATER + 3 * SECOND) == 0

    job.refresh_from_db()
    assert job.stuck_at is None
    assert not Escalation.objects.filter(closed_at=None).exists()
    assert len(list_messages("job.recovered")) == 1
    assert audited() == ["job.stuck", "job.recovered"]


def test_one_that_is_stuck_twice_is_told_twice():
    job = silent()
    stuck_jobs.escalate_stuck_jobs(LATER)
    Job.objects.filter(pk=job.pk).update(heartbeat_at=LATER)
    stuck_jobs.escalate_stuck_jobs(LATER + SECOND)

    stuck_jobs.escalate_stuck_jobs(LATER + 6 * MINUTE)

    assert len(list_messages("job.stuck")) == 2
    assert Escalation.objects.count() == 2


@pytest.mark.parametrize(
    ("fields", "stuck"),
    [
        ({"state": "running"}, True),
        ({"state": "running", "next_at": None}, True),
        ({"state": "holding"}, True),
        ({"state": "paused"}, True),
        ({"state": "paused", "next_at": None}, False),
        ({"state": "pending", "next_at": None}, False),
        ({"state": "running", "next_at": LATER + DAY}, False),
        ({"state": "running", "next_at": LATER - SECOND}, False),
        ({"state": "running", "heartbeat_at": LATER + DAY}, False),
        ({"state": "running", "heartbeat_at": None}, True),
        ({"state": "completed", "finished_at": NOW}, False),
        ({"state": "failed", "finished_at": NOW, "next_at": None}, False),
        ({"state": "failed", "finished_at": NOW}, True),
    ],
)
def test_which_jobs_are_watched(fields, stuck):
    job = silent(**fields)

    assert stuck_jobs.escalate_stuck_jobs(LATER) == stuck

    job.refresh_from_db()
    assert job_resource(job, LATER)["stuck"] == stuck
    assert len(attention.list_stuck_jobs(LATER)) == stuck


def test_a_resource_says_so_before_anybody_has_looked():
    job = silent()
    job.refresh_from_db()

    assert job_resource(job, LATER)["stuck"]
    assert not job_resource(job, NOW)["stuck"]


def test_of_many_ten_call_people_and_the_others_wait_on_the_page():
    for _ in range(13):
        silent()

    assert stuck_jobs.escalate_stuck_jobs(LATER) == 13

    assert len(list_messages("job.stuck")) == Escalation.objects.count() == 10
    assert audited() == ["job.stuck"] * 13
    assert len(attention.list_stuck_jobs(LATER)) == 13
    first = Escalation.objects.order_by("id").first()
    Job.objects.filter(pk=int(first.subject.partition(":")[2])).update(heartbeat_at=LATER)
    stuck_jobs.escalate_stuck_jobs(LATER + SECOND)
    stuck_jobs.escalate_stuck_jobs(LATER + 16 * SECOND)
    assert Escalation.objects.filter(closed_at=None).count() == 10
    assert len(list_messages("job.stuck")) == 11


def test_after_the_whole_house_was_away_the_jobs_get_a_turn_before_they_count_as_stuck():
    now = db_now()
    silent(heartbeat_at=now - 6 * MINUTE, next_at=now - 6 * MINUTE)

    assert ticks.run("jobs.watch", "worker") == 0
    assert ticks.run("jobs.watch", "worker") == 1

    Tick.objects.filter(name="jobs.watch").update(ran_at=now - 2 * MINUTE)
    Job.objects.update(stuck_at=None)
    assert ticks.run("jobs.watch", "worker") == 0


def test_a_cancelled_one_is_not_told_to_go_on():
    job = silent()
    stuck_jobs.escalate_stuck_jobs(LATER)
    Job.objects.filter(pk=job.pk).update(state="cancelled", finished_at=LATER, next_at=None)
    escalation.close(subject=f"job:{job.pk}", now=LATER)

    stuck_jobs.escalate_stuck_jobs(LATER + SECOND)

    assert list_messages("job.recovered") == []
    assert audited() == ["job.stuck"]
    assert Job.objects.get(pk=job.pk).stuck_at is None


def test_on_the_page_it_is_critical_until_somebody_knows():
    job = silent()
    stuck_jobs.escalate_stuck_jobs(LATER)
    (before,) = attention.list_stuck_jobs(LATER)

    escalation.acknowledge(subject=f"job:{job.pk}", actor=ACTOR, now=LATER)
    (after,) = attention.list_stuck_jobs(LATER)

    assert (before.severity, after.severity) == ("critical", "warning")
    assert "no heartbeat for 5 min 1 s" in before.detail
    assert "Acknowledged by system:test" in after.detail


def test_one_that_was_paused_for_more_than_a_day_waits_for_somebody():
    begin()
    job = begin()
    Job.objects.filter(pk=job.pk).update(state="paused", paused_at=NOW, next_at=None)

    assert attention.list_forgotten_jobs(NOW + DAY) == []
    (waiting,) = attention.list_forgotten_jobs(NOW + DAY + SECOND)

    assert (waiting.severity, waiting.since) == ("warning", NOW)
    assert waiting.path == f"/jobs/{job.pk}/"


def test_what_is_on_record_is_plain_json():
    job = silent()
    stuck_jobs.escalate_stuck_jobs(LATER)

    after = json.loads(AuditEntry.objects.get().after)

    assert after == {"job": job.pk, "kind": "test", "state": "running", "step": 0}
