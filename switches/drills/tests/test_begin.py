"""Permissions to begin drills and to mark instances."""

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from controlplane.core.http.tests.callers import at_once, person
from controlplane.core.jobs.models import Job
from switches import services as switches
from switches.drills import services
from switches.drills.tests.drill_helpers import (
    CANARY,
    SHELL,
    audit_actions,
    begin,
    mark,
    report_present,
    run_drill,
    turn,
    version,
)
from switches.models import Drill, DrillMark, Switch
from switches.tests.browsers import REASON


def actor(role):
    return person(role, f"a-{role}").as_actor()


class TestBeginning:
    def test_operator_may(self, now):
        mark(CANARY, now=now)

        drill = begin(by=actor("operator"), now=now)

        job = Job.objects.get(pk=drill.pk)
        assert (job.kind, job.subject) == ("drill", "segment:finance")
        assert job.created_by == "user:a-operator"
        assert Switch.objects.get().pk == "segment:finance"
        assert version() == 0

    def test_viewer_may_not(self, now):
        mark(CANARY, now=now)

        with pytest.raises(Forbidden):
            begin(by=actor("viewer"), now=now)

    def test_global_switch_is_refused(self, now):
        mark(CANARY, now=now)

        with pytest.raises(InvalidInput, match="global"):
            begin("global:all", now=now)

    @pytest.mark.parametrize("mode", ["", "LIVE", "real"])
    def test_unknown_mode_is_refused(self, now, mode):
        with pytest.raises(InvalidInput, match="mode"):
            begin(mode=mode, now=now)

    @pytest.mark.parametrize("reason", ["", "  ", "\x00bad", "x" * 2001])
    def test_reason_that_can_not_be_read_is_refused(self, now, reason):
        mark(CANARY, now=now)

        with pytest.raises(InvalidInput, match="reason"):
            services.begin_drill(scope="segment", key="a", reason=reason, actor=SHELL, now=now)

    def test_engaged_switch_is_a_conflict(self, now):
        mark(CANARY, now=now)
        switches.engage(
            scope="segment", key="finance", reason=REASON, expires_in="24h", actor=SHELL, now=now
        )

        with pytest.raises(Conflict, match="engaged"):
            begin(now=now)

    def test_second_drill_of_a_switch_is_a_conflict_and_of_another_is_not(self, now):
        mark(CANARY, now=now)
        begin(now=now)

        with pytest.raises(Conflict, match="already running"):
            begin(now=now)
        assert begin("segment:chat", now=now).pk

    def test_without_marks_it_says_how_to_mark(self, now):
        with pytest.raises(Conflict, match="drills/instances/"):
            begin(now=now)
        assert not Switch.objects.exists()

    def test_after_one_has_ended_another_may_begin(self, now):
        mark(CANARY, now=now)
        report_present(CANARY, now=now)
        run_drill(begin(now=now), CANARY, now=now)

        assert begin(now=now).pk


class TestMarking:
    @pytest.mark.parametrize("role", ["approver", "admin"])
    def test_approvers_may(self, now, role):
        services.mark_instances(pattern=" core/* ", actor=actor(role), now=now)

        assert DrillMark.objects.get().pattern == "core/*"

    @pytest.mark.parametrize("role", ["viewer", "operator"])
    def test_others_may_not(self, now, role):
        mark(CANARY, now=now)
        they = actor(role)

        with pytest.raises(Forbidden):
            services.mark_instances(pattern="core/*", actor=they, now=now)
        with pytest.raises(Forbidden):
            services.remove_mark(pattern=CANARY, actor=they, now=now)

    def test_twice_is_once(self, now):
        first = services.mark_instances(pattern="core/*", actor=SHELL, now=now)
        again = services.mark_instances(pattern="core/*", actor=SHELL, now=now)

        assert (first[1], again[1]) == (True, False)
        assert AuditEntry.objects.count() == 1

    @pytest.mark.parametrize("pattern", ["chat/*", "", "core/canary\x00"])
    def test_removing_what_is_not_marked_is_not_found(self, now, pattern):
        mark(CANARY, now=now)

        with pytest.raises(NotFound):
            services.remove_mark(pattern=pattern, actor=SHELL, now=now)

    def test_is_published_only_while_a_drill_is_in_force(self, now):
        mark(CANARY, now=now)
        report_present(CANARY, now=now)
        assert version() == 0

        begin(now=now)
        mark("core/b", now=now)
        assert version() == 0
        turn(now)
        mark("core/c", now=now)
        services.remove_mark(pattern="core/b", actor=SHELL, now=now)

        assert version() == 3
        assert audit_actions()[-3:] == ["drill.engaged", "drill.marked", "drill.unmarked"]


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def test_two_that_begin_together_are_one(self, now):
        mark(CANARY, now=now)

        results = at_once(*[lambda: _tried(now)] * 4)

        assert sorted(results) == ["begun", "conflict", "conflict", "conflict"]
        assert Drill.objects.count() == 1


def _tried(now):
    try:
        begin(now=now)
    except Conflict:
        return "conflict"
    return "begun"
