"""Jobs whose steps are functions: one after the other, tried again, waiting, resumed."""

from datetime import timedelta

import pytest

from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.stepwise import StepContinues, StepKind, StepPassed
from controlplane.core.jobs.tests.house import (
    ACTOR,
    LEASE_OVER,
    MINUTE,
    NOW,
    SECOND,
    Died,
    Dying,
    audited,
    begin,
    list_messages,
    turn,
)

pytestmark = pytest.mark.django_db


def passing(name="one", **output):
    return StepKind(name, lambda *_: StepPassed(output))


def failing(name="one", error="not today", **more):
    def run(*_):
        raise ValueError(error)

    return StepKind(name, run, **more)


def test_steps_pass_one_after_the_other_in_one_turn(given):
    given(passing("one", rows=3), passing("two"))
    job = begin("one", "two")

    assert turn(NOW + SECOND) == 1

    job.refresh_from_db()
    one, two = job.steps.order_by("index")
    assert (job.state, job.finished_at, job.next_at) == ("completed", NOW + SECOND, None)
    assert (job.done, job.total) == (2, 2)
    assert (one.state, one.data, one.attempts, two.state) == ("passed", {"rows": 3}, 1, "passed")
    assert turn(NOW + MINUTE) == 0


def test_a_step_that_fails_is_tried_again_with_longer_and_longer_pauses(given):
    given(failing())
    job = begin()
    now, pauses = NOW, []

    while Job.objects.get(pk=job.pk).is_live:
        turn(now)
        again = Job.objects.get(pk=job.pk).next_at
        pauses += [again - now] if again else []
        now = again or now

    assert pauses == [timedelta(seconds=n) for n in (1, 2, 4, 8)]
    job.refresh_from_db()
    assert (job.state, job.error) == ("failed", "ValueError: not today")
    assert job.steps.get().attempts == job.attempts == 5


def test_a_step_that_fails_at_first_passes_once_it_can(given):
    tries = []

    def run(*_):
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return StepPassed()

    given(StepKind("one", run))
    job = begin()

    for second in range(10):
        turn(NOW + second * SECOND)

    job.refresh_from_db()
    assert (job.state, job.error, len(tries)) == ("completed", "", 3)
    assert (job.steps.get().attempts, job.steps.get().error) == (3, "")


def test_a_step_that_waits_holds_says_why_and_is_no_new_attempt(given):
    given(StepKind("one", lambda turn, step, now, _: _wait_until(NOW + 5 * MINUTE, now)))
    job = begin()

    turn()
    waiting = Job.objects.get(pk=job.pk)
    turn(NOW + 2 * MINUTE)
    turn(NOW + 5 * MINUTE)

    assert (waiting.state, waiting.hold_reason) == ("holding", "somebody is late")
    job.refresh_from_db()
    assert (job.state, job.hold_reason, job.attempts) == ("completed", "", 1)


def _wait_until(moment, now):
    return StepPassed() if now >= moment else StepContinues(moment, holding="somebody is late")


def test_a_job_that_waits_for_long_shows_every_half_minute_that_it_lives(given):
    given(StepKind("one", lambda *_: StepContinues(NOW + timedelta(days=1))))
    job = begin()

    turn()
    turn(NOW + 30 * SECOND)

    assert Job.objects.get(pk=job.pk).heartbeat_at == NOW + 30 * SECOND


def test_after_a_checkpoint_another_worker_goes_on_from_there(given):
    dealt_with = []

    def run(turn, step, now, probe):
        for item in range((turn.job.checkpoint or {"next": 0})["next"], 6):
            dealt_with.append(item)
            if item % 2:
                turn.checkpoint({"next": item + 1}, done=item + 1, total=6, now=now, size=10)
                probe(f"at.{item}")
        return StepPassed()

    given(StepKind("one", run))
    job = begin()

    with pytest.raises(Died):
        turn(probe=_dying_at("at.3"))
    half = Job.objects.get(pk=job.pk)
    turn(NOW + LEASE_OVER)

    assert (half.done, half.total, half.checkpoint_at, half.checkpoint_bytes) == (4, 6, NOW, 10)
    assert dealt_with == [0, 1, 2, 3, 4, 5]
    job.refresh_from_db()
    assert (job.state, job.done, job.checkpoint) == ("completed", 6, None)


def _dying_at(point):
    def probe(here):
        if here == point:
            raise Died(point)

    return probe


def test_a_job_that_is_paused_in_the_middle_stops_at_its_next_checkpoint_and_goes_on_later(given):
    dealt_with = []

    def run(turn, step, now, probe):
        for item in range((turn.job.checkpoint or {"next": 0})["next"], 4):
            dealt_with.append(item)
            if item == 1 and now == NOW:
                _pause(turn.job, now)
            turn.checkpoint({"next": item + 1}, done=item + 1, now=now, size=10)
        return StepPassed()

    given(StepKind("one", run))
    job = begin()

    turn()
    paused = Job.objects.get(pk=job.pk)
    turn(NOW + MINUTE)
    control.intervene(job_id=job.pk, verb="resume", reason="go on", actor=ACTOR, now=NOW + MINUTE)
    turn(NOW + MINUTE)

    assert (paused.state, paused.done, paused.duplicates_stopped) == ("paused", 1, 1)
    assert dealt_with == [0, 1, 1, 2, 3]
    job.refresh_from_db()
    assert (job.state, job.attempts) == ("completed", 1)


def _pause(job, now):
    control.intervene(job_id=job.pk, verb="pause", reason="wait", actor=ACTOR, now=now)


def test_a_step_that_outlives_its_lease_is_done_again_and_its_first_worker_changes_nothing(given):
    recorded = []

    def run(running, step, now, probe):
        recorded.append(running.job.fence)
        if len(recorded) == 1:
            turn(NOW + LEASE_OVER)  # Meanwhile somebody else takes it, and is faster.
        return StepPassed({"by": running.job.fence})

    given(StepKind("one", run))
    job = begin()

    assert turn() == 0

    job.refresh_from_db()
    assert (job.state, job.steps.get().data) == ("completed", {"by": 2})
    assert (recorded, job.duplicates_stopped) == ([1, 2], 1)


def test_a_step_whose_workers_always_die_is_given_up_in_the_end(given, somewhere):
    def run(*_):
        raise Died("out of memory")

    given(StepKind("one", run))
    job = begin()
    now = NOW

    for _ in range(10):
        with pytest.raises(Died):
            turn(now)
        now += LEASE_OVER
    turn(now)

    job.refresh_from_db()
    assert (job.state, job.attempts) == ("failed", 10)
    assert "repeatedly crashed" in job.error
    assert len(list_messages("job.failed")) == 1


def test_an_error_that_postgresql_would_not_take_is_kept_in_words(given):
    given(failing(error="a\x00b" + "x" * 9000, most_attempts=1))
    job = begin()

    turn()

    job.refresh_from_db()
    assert job.state == "failed"
    assert job.error.startswith("ValueError: abx")
    assert len(job.error) == 2000


def test_it_comes_by_every_point_in_order(given):
    given(passing("one"), passing("two"))
    begin("one", "two")
    probe = Dying()

    turn(probe=probe)

    steps = [f"step.{name}.{it}" for name in ("one", "two") for it in STAGES]
    assert probe.points == ["test.claimed", *steps, "test.worked"]
    assert audited() == []


STAGES = ("found", "begun", "run", "passed")
