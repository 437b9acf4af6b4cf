"""Ramps whose compensation fails: it is escalated to a person, and tried until it works."""

from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection

from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.gates.models import ExternalVerdict
from controlplane.core.http.tests.sessions import another_session
from controlplane.core.jobs import engine
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.models import OutboxMessage
from switches import services
from switches.models import Episode
from switches.ramps.tests.ramp_helpers import SHELL, SMOKE

pytestmark = [
    pytest.mark.faults,
    pytest.mark.timeout(90),
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("destination"),
]

CALLED = "job.compensation_failed"


@contextmanager
def refusing(table, condition):
    """Context manager: let PostgreSQL refuse writes to the table that meet the condition."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ BEGIN RAISE EXCEPTION 'the disk is in flames'; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW"
            f" WHEN ({condition}) EXECUTE FUNCTION refuse()"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse CASCADE")


def begin(key, *gates):
    now = db_now()
    switch = {"scope": "feature", "key": key, "actor": SHELL}
    reason = "provider outage, 5xx since 02:10"
    services.engage(**switch, now=now, reason=reason, expires_in="24h")
    plan = [{"percent": 5, "dwell_seconds": 30, "gates": list(gates)}, {"percent": 100}]
    why = "cause fixed, verified twice"
    return services.release(**switch, now=db_now(), justification=why, plan=plan).ramp


def fails(now):
    observation = {"verdict": "fail", "observed_at": now, "received_at": now, "by": "token:ci"}
    ExternalVerdict.objects.create(name="smoke", **observation)


def percent(ramp):
    return Episode.objects.get(pk=ramp.episode_id).allow_percent


def actions(ramp):
    rows = AuditEntry.objects.filter(target=ramp.switch_id).order_by("id")
    return list(rows.values_list("action", flat=True))


@pytest.mark.smoke
def test_way_back_that_can_not_be_written_calls_a_person_and_is_tried_until_it_works():
    ramp = begin("chat", SMOKE)
    now = db_now() + timedelta(seconds=1)
    fails(now)

    with refusing("switches_episode", "NEW.allow_percent = 0 AND NEW.ended_at IS NULL"):
        for seconds in range(40):
            engine.run_tick("ramps.turn", now + timedelta(seconds=seconds))
        assert percent(ramp) == 5
        job = Job.objects.get(pk=ramp.pk)
        assert (job.state, job.compensated_at) == ("failed", None)
        assert "the disk is in flames" in job.outcome
        (call,) = Escalation.objects.filter(closed_at=None)
        assert (call.event, call.severity) == (CALLED, "critical")
        assert OutboxMessage.objects.filter(event=CALLED).count() == 1
        assert actions(ramp)[2:] == [CALLED]

    engine.run_tick("ramps.turn", now + timedelta(seconds=51))

    assert percent(ramp) == 0
    job.refresh_from_db()
    assert job.compensated_at is not None
    assert not Escalation.objects.filter(closed_at=None).exists()
    assert actions(ramp)[2:] == [CALLED, "ramp.compensated"]
    assert OutboxMessage.objects.filter(event="ramp.compensated").count() == 1


def test_way_back_that_can_not_even_be_told_keeps_no_other_ramp_from_going_on():
    ramp, other = begin("chat", SMOKE), begin("search")
    now = db_now() + timedelta(seconds=1)
    fails(now)

    with refusing("core_auditentry", "NEW.target = 'feature:chat'"):
        for seconds in range(0, 40, 2):
            engine.run_tick("ramps.turn", now + timedelta(seconds=seconds))
        assert percent(other) == 100
        assert percent(ramp) == 5
        assert Job.objects.get(pk=ramp.pk).compensation_failed_at is not None

    engine.run_tick("ramps.turn", now + timedelta(seconds=60))

    assert percent(ramp) == 0
    assert actions(ramp)[2:] == ["ramp.compensated"]


def test_step_that_can_not_be_written_is_tried_again_and_in_the_end_taken_back():
    ramp = begin("chat")
    now = db_now()

    with refusing("switches_episode", "NEW.allow_percent = 100"):
        for seconds in range(60):
            engine.run_tick("ramps.turn", now + timedelta(seconds=seconds))

    assert percent(ramp) == 0
    assert actions(ramp)[2:] == ["ramp.compensated"]
    job = Job.objects.get(pk=ramp.pk)
    assert "the disk is in flames" in job.outcome
    assert not Escalation.objects.filter(closed_at=None).exists()


def test_lock_that_is_held_for_too_long_keeps_no_lease():
    ramp = begin("chat")
    now = db_now() + timedelta(seconds=31)

    with another_session() as somebody:
        somebody.execute("SELECT 1 FROM switches_publication FOR UPDATE")
        assert engine.run_tick("ramps.turn", now) == 0

    assert Job.objects.get(pk=ramp.pk).lease_until is None
    assert engine.run_tick("ramps.turn", now + timedelta(seconds=1)) == 1
    assert percent(ramp) == 100
