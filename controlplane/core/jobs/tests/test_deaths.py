"""A worker that dies at any point: another goes on after the lease, and every effect is had once.

The worker dies in the probe of each point in turn, by something that no handler catches.
"""

import pytest
from django.db import transaction

from controlplane.core.actors import system_actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.jobs import effects
from controlplane.core.jobs.models import Job, JobEffect
from controlplane.core.jobs.stepwise import StepKind, StepPassed
from controlplane.core.jobs.tests.house import (
    LEASE_OVER,
    NOW,
    Died,
    Dying,
    begin,
    turn,
)

pytestmark = pytest.mark.django_db


def inside(turn, step, now, probe):
    """Has its effect in our own database: the effect and its key commit together."""
    with transaction.atomic():
        if not JobEffect.objects.filter(key=effects.build_key(turn.job, "publish")).exists():
            effects.record_effect(turn.job, "publish", now=now)
            probe("inside.had")
            target = f"job:{turn.job.pk}"
            audit.record(
                actor=system_actor("test"), action="test.published", target=target, now=now
            )
        probe("inside.written")
    probe("inside.committed")
    return StepPassed()


def outside_by(world):
    def run(turn, step, now, probe):
        try:
            key = effects.begin_effect(turn.job, "send", now=now)
        except effects.AlreadyDone:
            return StepPassed()
        probe("outside.attempted")
        world.act(key)
        probe("outside.acted")
        effects.end_effect(key, now=now)
        probe("outside.ended")
        return StepPassed()

    return run


@pytest.fixture
def kind(given, outside):
    given(StepKind("inside", inside), StepKind("outside", outside_by(outside)))


def points():
    """Return the number of points that an undisturbed job passes."""
    probe = Dying()
    begin("inside", "outside")
    turn(probe=probe)
    return len(probe.points)


def test_wherever_a_worker_dies_the_next_goes_on_and_every_effect_is_had_once(kind, outside):
    count = points()
    assert count > 12
    outside.asked.clear()

    for at in range(1, count + 1):
        job, probe = begin("inside", "outside"), Dying(at)
        with pytest.raises(Died):
            turn(probe=probe)
        assert turn(NOW + LEASE_OVER / 2) == 0, "its lease is not over"
        turn(NOW + LEASE_OVER)

        died_at = probe.points[-1]
        assert Job.objects.get(pk=job.pk).state == "completed", died_at
        published = AuditEntry.objects.filter(target=f"job:{job.pk}")
        assert published.count() == 1, died_at
        assert outside.acted == [f"test:{job.pk}:1:send"], died_at
        kept = JobEffect.objects.filter(job=job)
        assert all(effect.done_at for effect in kept), died_at
        assert kept.count() == 2, died_at
        outside.asked.clear()


def test_a_worker_that_dies_time_and_again_loses_nothing_either(kind, outside):
    count = points()
    outside.asked.clear()
    job, now = begin("inside", "outside"), NOW

    for at in range(2, count, 3):
        died = Dying(at)
        try:
            turn(now, probe=died)
        except Died:
            now += LEASE_OVER
    turn(now)

    assert Job.objects.get(pk=job.pk).state == "completed"
    assert AuditEntry.objects.filter(target=f"job:{job.pk}").count() == 1
    assert outside.acted == [f"test:{job.pk}:1:send"]


def test_between_the_call_and_its_end_it_is_known_that_nobody_knows(kind, outside):
    job = begin("inside", "outside")

    with pytest.raises(Died):
        turn(probe=_dying_at("outside.acted"))

    effect = JobEffect.objects.get(job=job, name="send")
    assert (effect.attempted_at, effect.done_at) == (NOW, None)


def _dying_at(point):
    def probe(here):
        if here == point:
            raise Died(point)

    return probe


def test_an_effect_of_our_own_that_was_had_is_refused_and_rolls_back_what_came_with_it():
    job = begin()
    effects.record_effect(job, "publish", now=NOW)

    with pytest.raises(effects.AlreadyDone):
        _publish_again(job)

    assert Job.objects.get(pk=job.pk).outcome == ""


@transaction.atomic
def _publish_again(job):
    Job.objects.filter(pk=job.pk).update(outcome="twice")
    effects.record_effect(job, "publish", now=NOW)
