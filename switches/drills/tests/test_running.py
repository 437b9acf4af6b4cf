"""A drill from begin to end: publication, measurement, proof and failures."""

from datetime import timedelta

import pytest
from django.db import transaction

from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Conflict
from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.outbox import renderer
from switches import publication, services
from switches.drills import services as drills
from switches.drills.job import APPLIED_WITHIN
from switches.drills.tests.drill_helpers import (
    CANARY,
    SHELL,
    WHY,
    acknowledge,
    audit_actions,
    begin,
    mark,
    report_present,
    run_drill,
    turn,
    version,
)
from switches.episodes import live_drills
from switches.models import Drill, DrillMark, Episode, Switch
from switches.tests.browsers import REASON

SECOND = timedelta(seconds=1)


@pytest.fixture
def drill(now):
    mark(CANARY, now=now)
    report_present(CANARY, "core/other", now=now)
    return begin(now=now)


def steps(drill):
    return {step.name: step for step in JobStep.objects.filter(job_id=drill.pk).order_by("index")}


def finance():
    return Switch.objects.get(pk="segment:finance")


class TestPassing:
    def test_engages_and_releases_and_proves_the_switch(self, drill, now):
        before = version()

        ended = run_drill(drill, CANARY, now=now)

        assert ended.passed is True
        assert (ended.engaged_version, ended.released_version) == (before + 1, before + 2)
        assert version() == before + 2
        assert finance().last_proven_at is not None
        assert Job.objects.get(pk=drill.pk).state == Job.State.COMPLETED
        assert {step.state for step in steps(drill).values()} == {JobStep.State.PASSED}

    def test_touches_no_episode_and_no_version_of_the_switch(self, drill, now):
        run_drill(drill, CANARY, now=now)

        assert not Episode.objects.exists()
        assert finance().version == 0
        assert finance().committed_at is None

    def test_measures_delays_of_marked_instances_from_the_commit(self, drill, now):
        mark("core/canary-2", now=now)
        turn(now)
        acknowledge(CANARY, now=now, after_ms=40)
        acknowledge("core/canary-2", now=now, after_ms=900)
        acknowledge("core/other", now=now, after_ms=5000)
        turn(now + SECOND)
        acknowledge(CANARY, "core/canary-2", now=now + SECOND, after_ms=70)
        turn(now + 2 * SECOND)

        drill.refresh_from_db()
        assert drill.measured["engage"] == {
            "instances": 2,
            "applied": 2,
            "p50_ms": 40,
            "p99_ms": 900,
            "stragglers": [],
        }
        assert drill.measured["release"]["p99_ms"] == 70

    def test_who_is_marked_later_is_not_measured(self, drill, now):
        """An instance marked later may have received this snapshot version without the drill."""
        turn(now)
        acknowledge("core/other", now=now)
        mark("core/other", "core/*", now=now)
        acknowledge(CANARY, now=now + SECOND)
        report_present("core/other", now=now + SECOND)

        turn(now + SECOND)

        found = Drill.objects.get().measured["engage"]
        assert (found["instances"], found["applied"]) == (1, 1)

    def test_who_is_unmarked_and_marked_again_is_not_measured(self, now):
        mark("core/*", now=now)
        report_present(CANARY, "core/other", now=now)
        mark("core/other", now=now)
        drill = begin(now=now)
        turn(now)

        drills.remove_mark(pattern="core/*", actor=SHELL, now=now)
        drills.remove_mark(pattern="core/other", actor=SHELL, now=now)
        acknowledge("core/other", now=now)
        mark("core/other", CANARY, now=now)
        acknowledge("core/other", CANARY, now=now + SECOND)
        for seconds in range(1, 150, 5):
            turn(now + seconds * SECOND)

        drill.refresh_from_db()
        assert drill.measured["engage"]["instances"] == 0
        assert "No drill instance is left" in drill.failure_reason

    def test_who_joins_a_marked_service_is_stopped_and_measured(self, now):
        mark("core/*", now=now)
        report_present(CANARY, now=now)
        begin(now=now)
        turn(now)
        acknowledge(CANARY, "core/new", now=now)

        turn(now + SECOND)

        assert Drill.objects.get().measured["engage"]["instances"] == 2

    def test_who_is_unmarked_while_it_is_looked_at_is_not_written_down(self, drill, now):
        mark("core/canary-2", now=now)
        turn(now)
        acknowledge(CANARY, "core/canary-2", now=now)

        def unmarked_meanwhile(point):
            if point == "drill.engage.looked" and DrillMark.objects.count() == 2:
                drills.remove_mark(pattern="core/canary-2", actor=SHELL, now=now)

        turn(now + SECOND, unmarked_meanwhile)
        assert "engage" not in Drill.objects.get().measured
        turn(now + 2 * SECOND)

        found = Drill.objects.get().measured["engage"]
        assert (found["instances"], found["applied"]) == (1, 1)

    def test_waits_for_every_marked_instance_and_for_nobody_else(self, drill, now):
        mark("core/canary-2", now=now)
        report_present("core/canary-2", now=now)
        turn(now)
        acknowledge(CANARY, now=now)
        turn(now + SECOND)
        assert "engage" not in Drill.objects.get().measured

        acknowledge("core/canary-2", now=now + SECOND)
        turn(now + 2 * SECOND)

        assert Drill.objects.get().measured["engage"]["applied"] == 2

    def test_tells_each_step_in_the_audit_trail_those_that_publish_with_their_version(
        self, drill, now
    ):
        run_drill(drill, CANARY, now=now)

        assert audit_actions() == [
            "drill.marked",
            "drill.begun",
            "drill.engaged",
            "drill.released",
            "drill.passed",
        ]
        entries = AuditEntry.objects.filter(action__in=["drill.engaged", "drill.released"])
        published = [entry.after for entry in entries.order_by("id")]
        assert [f'"version":{n}' in after for n, after in enumerate(published, 1)] == [True, True]
        assert set(
            AuditEntry.objects.filter(action__startswith="drill.e").values_list("target")
        ) == {("segment:finance",)}

    def test_ends_by_itself_five_minutes_after_it_engaged(self, drill, now):
        turn(now)

        drill.refresh_from_db()
        assert drill.ends_by - drill.engaged_at == timedelta(minutes=5)


class TestFailing:
    def test_straggler_is_named_after_a_minute_and_all_is_released(self, drill, now):
        mark("core/canary-2", now=now)
        moment = now
        while moment < now + APPLIED_WITHIN + timedelta(seconds=70):
            acknowledge(CANARY, now=moment)
            report_present("core/canary-2", now=moment)
            turn(moment)
            moment += SECOND

        drill.refresh_from_db()
        assert drill.passed is False
        assert drill.measured["engage"]["stragglers"] == ["core/canary-2"]
        assert (drill.measured["engage"]["applied"], drill.measured["engage"]["instances"]) == (
            1,
            2,
        )
        assert "core/canary-2" in drill.failure_reason
        assert drill.released_version is not None
        assert not live_drills.find_drills_in_force().exists()
        assert finance().last_proven_at is None
        assert audit_actions()[-2:] == ["drill.released", "drill.failed"]

    def test_waits_for_a_minute_and_no_less(self, drill, now):
        turn(now)
        drill.refresh_from_db()
        report_present(CANARY, now=now + timedelta(seconds=59))

        turn(drill.engaged_at + timedelta(seconds=59))
        assert live_drills.find_drills_in_force().exists()

        report_present(CANARY, now=now + timedelta(seconds=60))
        turn(drill.engaged_at + timedelta(seconds=60))
        assert not live_drills.find_drills_in_force().exists()

    def test_release_that_nobody_hears_fails_too(self, drill, now):
        turn(now)
        acknowledge(CANARY, now=now)
        for seconds in range(1, 70, 2):
            report_present(CANARY, now=now + seconds * SECOND)
            turn(now + seconds * SECOND)

        drill.refresh_from_db()
        assert drill.passed is False
        assert drill.measured["engage"]["applied"] == 1
        assert drill.measured["release"]["stragglers"] == [CANARY]

    def test_nobody_there_publishes_nothing(self, now):
        mark(CANARY, now=now)
        report_present("core/other", now=now)
        before = version()

        ended = run_drill(begin(now=now), now=now)

        assert ended.passed is False
        assert "No drill instance is reporting" in ended.failure_reason
        assert version() == before
        assert ended.engaged_at is None

    def test_one_that_fell_silent_when_it_should_have_stopped_is_a_straggler(self, drill, now):
        mark("core/broken", now=now)
        report_present("core/broken", now=now)
        turn(now)

        for seconds in range(1, 150, 5):
            acknowledge(CANARY, now=now + seconds * SECOND)
            turn(now + seconds * SECOND)

        drill.refresh_from_db()
        assert drill.passed is False
        assert drill.measured["engage"]["stragglers"] == ["core/broken"]

    def test_nobody_left_proves_nothing(self, drill, now):
        turn(now)
        drills.remove_mark(pattern=CANARY, actor=SHELL, now=now)

        for seconds in range(1, 150, 5):
            turn(now + seconds * SECOND)

        drill.refresh_from_db()
        assert drill.passed is False
        assert "No drill instance is left" in drill.failure_reason

    def test_late_worker_does_not_take_an_ended_one_for_proof(self, drill, now):
        turn(now)
        late = now + timedelta(minutes=6)
        acknowledge(CANARY, now=late)

        ended = run_drill(drill, CANARY, now=late)

        assert ended.passed is False
        assert "was not running" in ended.failure_reason

    def test_earlier_failure_leaves_what_was_proven_before(self, drill, now):
        run_drill(drill, CANARY, now=now)
        proven = finance().last_proven_at
        later = now + timedelta(days=1)
        report_present(CANARY, now=later)

        second = begin(now=later)
        for seconds in range(0, 200, 5):
            report_present(CANARY, now=later + seconds * SECOND)
            turn(later + seconds * SECOND)

        second.refresh_from_db()
        assert second.passed is False
        assert finance().last_proven_at == proven


class TestDry:
    def test_says_whom_it_would_reach_and_proves_nothing(self, now):
        mark("core/*", now=now)
        report_present(CANARY, "core/b", "chat/a", now=now)
        before = version()

        ended = run_drill(begin(mode="dry", now=now), now=now)

        assert ended.measured["look"] == {"instances": 2, "names": ["core/b", CANARY]}
        assert ended.passed is True
        assert version() == before
        assert finance().last_proven_at is None
        assert list(steps(ended)) == ["look", "record"]


class TestEngageWins:
    def supersede(self, now):
        with transaction.atomic():
            head = publication.lock()
            switch = Switch.objects.select_for_update().get(pk="segment:finance")
            ended = live_drills.supersede(switch, "Engaged for real meanwhile.", now)
            publication.publish(head, switch, now)
            return ended

    def test_ends_it_at_once_and_a_worker_writes_it_down(self, drill, now):
        turn(now)
        before = version()

        self.supersede(now + SECOND)

        assert not live_drills.find_drills_in_force().exists()
        assert version() == before + 1
        ended = run_drill(drill, CANARY, now=now + 2 * SECOND)
        assert ended.passed is False
        assert ended.failure_reason == "Engaged for real meanwhile."
        assert version() == before + 1
        assert audit_actions()[-2:] == ["drill.engaged", "drill.failed"]

    def test_before_it_engaged_it_never_does(self, drill, now):
        self.supersede(now)

        ended = run_drill(drill, CANARY, now=now)

        assert ended.engaged_at is None
        assert ended.passed is False

    def test_worker_at_it_writes_nothing_any_more(self, drill, now):
        turn(now)
        acknowledge(CANARY, now=now)

        def engaged_meanwhile(point):
            if point == "step.engaged_applied.found":
                self.supersede(now + SECOND)

        turn(now + SECOND, engaged_meanwhile)

        job = Job.objects.get(pk=drill.pk)
        assert job.duplicates_stopped == 1
        assert "engage" not in Drill.objects.get().measured
        assert run_drill(drill, CANARY, now=now + 2 * SECOND).passed is False

    def test_without_one_under_way_it_is_one_query(self, now, django_assert_num_queries):
        switch = Switch.objects.create(id="segment:x", scope="segment", key="x", registered_at=now)

        with django_assert_num_queries(1):
            assert live_drills.supersede(switch, "why", now) is None

    def test_switch_that_is_stopped_when_it_would_engage_is_left_alone(self, drill, now):
        Episode.objects.create(
            switch=finance(),
            reason=REASON,
            engaged_by_type="system",
            engaged_by_name="test",
            engaged_by_identity="system:test",
            engaged_at=now,
            engaged_version=1,
            expires_at=now + timedelta(days=1),
            on_expiry="hold",
            salt="s",
        )

        ended = run_drill(drill, CANARY, now=now)

        assert ended.engaged_at is None
        assert "engaged" in ended.failure_reason


class TestCancelling:
    def test_releases_at_once_and_is_neither_passed_nor_failed(self, drill, now):
        turn(now)
        before = version()

        drills.cancel_drill(
            drill_id=drill.pk, reason="customers on it", actor=SHELL, now=now + SECOND
        )

        drill.refresh_from_db()
        assert not live_drills.find_drills_in_force().exists()
        assert version() == before + 1 == drill.released_version
        assert (drill.live, drill.passed) == (False, None)
        assert Job.objects.get(pk=drill.pk).state == Job.State.CANCELLED
        turn(now + timedelta(minutes=1))
        assert version() == before + 1

    def test_before_it_engaged_publishes_nothing(self, drill, now):
        before = version()

        drills.cancel_drill(drill_id=drill.pk, reason="no", actor=SHELL, now=now)

        assert version() == before

    def test_twice_is_a_conflict(self, drill, now):
        drills.cancel_drill(drill_id=drill.pk, reason="no", actor=SHELL, now=now)

        with pytest.raises(Conflict):
            drills.cancel_drill(drill_id=drill.pk, reason="no", actor=SHELL, now=now)

    def test_pausing_is_refused(self, drill, now):
        with pytest.raises(Conflict, match="Cancel it"):
            control.intervene(job_id=drill.pk, verb="pause", reason="x", actor=SHELL, now=now)


class TestWords:
    def test_messages_say_what_came_of_it(self):
        content = renderer.render(
            "drill.failed", {"switch": "segment:finance", "said": "1 of 2", "reason": WHY}
        )

        assert content.title == "Drill of segment:finance failed"
        assert ("Result", "1 of 2") in content.lines


def test_engaging_for_real_through_the_service_ends_the_drill(now, drill):
    turn(now)

    services.engage(
        scope="segment", key="finance", reason=REASON, expires_in="24h", actor=SHELL, now=now
    )

    assert not live_drills.find_drills_in_force().exists()


def test_clock_that_was_set_back_ends_it_and_does_not_wait_for_the_time_to_come_again(drill, now):
    turn(now)
    report_present(CANARY, now=now - timedelta(hours=1))
    Job.objects.filter(pk=drill.pk).update(heartbeat_at=now)

    turn(now - timedelta(hours=1))

    assert not live_drills.find_drills_in_force().exists()
