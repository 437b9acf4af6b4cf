"""A failure of one job is counted for it, and the others go on."""

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from controlplane.core.jobs import claims, control, effects, stuck_jobs
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.stepwise import StepContinues, StepKind, StepPassed
from controlplane.core.jobs.tests.house import (
    ACTOR,
    DAY,
    LEASE_OVER,
    MINUTE,
    NOW,
    SECOND,
    Died,
    audited,
    begin,
    list_messages,
    state_of,
    turn,
)
from controlplane.core.outbox.escalation import Escalation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("somewhere")]


def fails(*_):
    raise ValueError("no")


def times_out(*_):
    """PostgreSQL ends a statement that takes too long; the connection is as good as before."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 1")
        cursor.execute("SELECT pg_sleep(1)")


def bad_only(function):
    """Fails for one job, and goes well for the others."""

    def run(running, *_):
        if running.job.subject == "segment:bad":
            function()
        return StepPassed()

    return run


def test_a_statement_that_takes_too_long_is_the_failure_of_its_job(given):
    given(StepKind("one", bad_only(times_out), most_attempts=2))
    bad, good = begin(subject="segment:bad"), begin()

    turn()
    turn(NOW + SECOND)

    assert (state_of(good), state_of(bad)) == ("completed", "failed")
    bad.refresh_from_db()
    assert (bad.attempts, bad.lease_until) == (2, None)
    assert "statement timeout" in bad.error


def test_one_that_can_not_be_taken_back_for_that_calls_a_person_and_keeps_no_other(given):
    given(StepKind("one", bad_only(fails), compensate=times_out, most_attempts=1))
    bad, good = begin(subject="segment:bad"), begin()

    turn()

    assert (state_of(good), state_of(bad)) == ("completed", "failed")
    assert Job.objects.get(pk=bad.pk).compensation_failed_at == NOW
    assert Escalation.objects.get(closed_at=None).event == "job.compensation_failed"


def test_a_kind_that_times_out_gives_its_leases_back(given):
    given(work=times_out)
    job = begin()

    with pytest.raises(ExceptionGroup):
        turn()

    assert Job.objects.get(pk=job.pk).lease_until is None


@pytest.mark.django_db(transaction=True)
def test_a_database_that_goes_away_is_no_failure_of_the_step(given):
    def run(*_):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    given(StepKind("one", run))
    job = begin()

    with pytest.raises(OperationalError) as gone:
        turn()
    connection.close()

    assert isinstance(gone.value.__cause__, psycopg.errors.AdminShutdown)
    job.refresh_from_db()
    assert (job.state, job.error) == ("running", "")


def test_what_kills_its_worker_is_tried_after_what_does_not(given):
    given(StepKind("one", bad_only(_die)))
    bad, good = begin(subject="segment:bad"), begin()

    with pytest.raises(Died):
        turn()
    assert state_of(good) == "running"
    with pytest.raises(Died):
        turn(NOW + LEASE_OVER)

    assert (state_of(good), state_of(bad)) == ("completed", "running")


def _die():
    raise Died("out of memory")


def test_what_kills_whoever_takes_it_back_calls_a_person_at_the_second_death(given):
    given(StepKind("one", fails, compensate=lambda *_: _die(), most_attempts=1))
    job, now, deaths = begin(), NOW, 0

    while not Escalation.objects.exists():
        with pytest.raises(Died):
            turn(now)
        deaths += 1
        now = max(now + LEASE_OVER, Job.objects.get(pk=job.pk).next_at)
    assert turn(now - SECOND) == 0

    job.refresh_from_db()
    assert deaths <= 3
    assert job.attempts == deaths
    assert job.compensation_failed_at is not None
    assert [call.event for call in Escalation.objects.all()] == ["job.compensation_failed"]
    assert audited() == ["job.failed", "job.compensation_failed"]


def test_one_death_while_taking_back_calls_nobody(given):
    deaths = [1]

    def compensate(*_):
        if deaths:
            deaths.clear()
            _die()

    given(StepKind("one", fails, compensate=compensate, most_attempts=1))
    job = begin()
    with pytest.raises(Died):
        turn()

    turn(NOW + LEASE_OVER)

    assert Job.objects.get(pk=job.pk).compensated_at is not None
    assert not Escalation.objects.exists()


def test_one_that_nobody_takes_back_is_stuck_until_somebody_does(given):
    given(StepKind("one", lambda *_: StepPassed()))
    job = begin()
    Job.objects.filter(pk=job.pk).update(state="failed", finished_at=NOW - DAY)

    assert stuck_jobs.escalate_stuck_jobs(NOW + 6 * MINUTE) == 1
    turn(NOW + 6 * MINUTE)
    stuck_jobs.escalate_stuck_jobs(NOW + 7 * MINUTE)

    job.refresh_from_db()
    assert (job.compensated_at, job.stuck_at) == (NOW + 6 * MINUTE, None)
    assert not Escalation.objects.filter(closed_at=None).exists()


def test_nobody_is_called_twice_about_one_that_could_not_be_taken_back(given):
    given(StepKind("one", fails, compensate=fails, most_attempts=1))
    begin()
    turn()

    stuck_jobs.escalate_stuck_jobs(NOW + 6 * MINUTE)

    assert [call.event for call in Escalation.objects.all()] == ["job.compensation_failed"]
    assert list_messages("job.stuck") == []


def test_an_effect_that_was_had_by_a_worker_that_died_has_the_step_pass(given):
    def run(running, step, now, probe):
        with transaction.atomic():
            effects.record_effect(running.job, "publish", now=now)
        probe("had")
        return StepPassed()

    given(StepKind("one", run))
    job = begin()
    with pytest.raises(Died):
        turn(probe=lambda point: _die() if point == "had" else None)

    turn(NOW + LEASE_OVER)

    job.refresh_from_db()
    assert (job.state, job.attempts, job.duplicates_stopped) == ("completed", 2, 1)


@pytest.mark.parametrize("output", [{"a": "\x00"}, {"a": object()}])
def test_an_output_that_can_not_be_kept_is_the_failure_of_its_step(given, output):
    given(StepKind("one", lambda *_: StepPassed(output), most_attempts=2))
    job = begin("one")

    turn()
    turn(NOW + SECOND)

    job.refresh_from_db()
    assert (job.state, job.attempts, job.steps.get().data) == ("failed", 2, {})


def test_an_error_of_half_a_character_is_kept_in_words(given):
    def run(*_):
        raise ValueError("\ud800")

    given(StepKind("one", run, most_attempts=1))
    job = begin()

    turn()

    assert Job.objects.get(pk=job.pk).error == "ValueError: \\ud800"


def test_a_transaction_that_is_rolled_back_leaves_the_job_at_hand_as_it_was(given):
    begin()
    (held,) = claims.claim_jobs(["test"], NOW, most=1)

    with pytest.raises(ValueError, match="no"):
        _roll_back(held)

    held.change(outcome="y")
    assert (held.job.step_index, Job.objects.get().outcome) == (0, "y")


def _roll_back(held):
    with held.together():
        held.change(step_index=1, outcome="x")
        fails()


def slow_to_retry(given):
    """A job that has failed nine times: it pauses for 256 seconds."""
    tries = []

    def run(_turn, _step, now, _probe):
        tries.append(now)
        fails()

    given(StepKind("one", run, most_attempts=12))
    job = begin()
    job.steps.update(attempts=8)
    turn()
    return job, tries


def test_a_long_pause_before_the_next_try_shows_life_and_is_kept(given):
    job, tries = slow_to_retry(given)

    for seconds in range(10, 260, 10):
        turn(NOW + seconds * SECOND)
        assert NOW + seconds * SECOND - Job.objects.get(pk=job.pk).heartbeat_at <= 30 * SECOND

    assert tries == [NOW]
    turn(NOW + 260 * SECOND)
    assert len(tries) == 2


def test_a_pause_ends_when_the_clock_is_set_back(given):
    _, tries = slow_to_retry(given)

    turn(NOW - DAY)

    assert tries == [NOW, NOW - DAY]


def test_pausing_a_stuck_job_ends_the_call_and_tells_of_no_recovery(given):
    given(StepKind("one", lambda *_: StepPassed()))
    job = begin()
    later = NOW + 6 * MINUTE
    stuck_jobs.escalate_stuck_jobs(later)

    control.intervene(job_id=job.pk, verb="pause", reason="why", actor=ACTOR, now=later)
    stuck_jobs.escalate_stuck_jobs(later + SECOND)

    assert not Escalation.objects.filter(closed_at=None).exists()
    assert (list_messages("job.recovered"), audited()) == ([], ["job.stuck", "job.paused"])


def test_a_kind_that_tells_its_own_failures_is_told_of_once(given):
    given(StepKind("one", fails, most_attempts=1), tells_failures=True)
    begin()

    turn()

    assert (list_messages("job.failed"), audited()) == ([], ["job.failed"])


def test_a_step_that_is_looked_at_late_holds_its_lease_from_then_on(given):
    given(StepKind("one", lambda *_: StepContinues(NOW + DAY)))
    job = begin()
    turn()
    (held,) = claims.claim_jobs(["test"], NOW + 30 * SECOND, most=1)
    later = NOW + 40 * SECOND

    given(StepKind("one", lambda *_: StepContinues(NOW + DAY))).work([held], later, lambda _: None)

    job.refresh_from_db()
    assert (job.heartbeat_at, job.lease_until) == (later, later + claims.LEASE)
