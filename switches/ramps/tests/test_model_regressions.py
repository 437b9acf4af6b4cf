"""Regressions that the model test has found, each by itself."""

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.accounts.models.people import User
from controlplane.core.audit.models import AuditEntry
from controlplane.core.jobs import claims, engine, kinds
from controlplane.core.jobs.models import Job, JobStep
from switches import services
from switches.models import Ramp, Switch
from switches.ramps import actions

NOW = datetime(2026, 11, 21, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
BACK = "root cause fixed in release 41, verified on staging"
PLAN = [
    {"percent": 5, "dwell_seconds": 7200, "gates": [{"type": "external", "gate": "smoke"}]},
    {"percent": 100},
]


def approver():
    return User.objects.create_user("amir", "a long password", role="approver").as_actor()


def engage(actor, now, key="segment:finance", **more):
    scope, _, name = key.partition(":")
    services.engage(
        scope=scope,
        key=name,
        reason="checkout errors since two o'clock",
        actor=actor,
        now=now,
        **{"expires_in": "24h", **more},
    )


def release(actor, now, key="segment:finance", plan=PLAN):
    scope, _, name = key.partition(":")
    return services.release(
        scope=scope, key=name, justification=BACK, plan=plan, actor=actor, now=now
    )


@pytest.mark.django_db
class TestClockSetBack:
    def test_a_ramp_is_looked_at_again_and_again(self):
        amir = approver()
        engage(amir, NOW)
        release(amir, NOW)

        engine.run_tick("ramps.turn", NOW - HOUR)
        engine.run_tick("ramps.turn", NOW - HOUR + SECOND)

        assert Job.objects.get().heartbeat_at == NOW - HOUR + SECOND

    def test_an_engage_wins_over_a_ramp(self):
        amir = approver()
        engage(amir, NOW)
        release(amir, NOW)

        engage(amir, NOW - HOUR, expires_in="60s")

        switch = Switch.objects.get()
        assert switch.state == "engaged"
        assert switch.episode.expires_at == NOW - HOUR + timedelta(seconds=60)


@pytest.mark.django_db
def test_asking_twice_at_one_moment_asks_for_one_ramp():
    amir = approver()
    engage(amir, NOW, "global:all")

    release(amir, NOW, "global:all")
    release(amir, NOW, "global:all")

    assert Ramp.objects.count() == 1
    assert AuditEntry.objects.filter(action="ramp.requested").count() == 1


@pytest.mark.django_db
def test_a_late_worker_that_followed_a_dead_one_counts_no_attempt():
    amir = approver()
    engage(amir, NOW)
    ramp = release(amir, NOW).ramp
    claims.claim_jobs(["ramp"], NOW, most=1)
    after = NOW + timedelta(seconds=16)
    turns = claims.claim_jobs(["ramp"], after, most=1)
    actions.pause(ramp_id=ramp.pk, reason="we look at it first", actor=amir, now=after)
    before = Job.objects.get().attempts, JobStep.objects.first().attempts

    kinds.get_kinds()["ramp"].work(turns, after, kinds.no_probe)

    assert turns[0].inherited
    assert (Job.objects.get().attempts, JobStep.objects.first().attempts) == before
