"""Ramps together with safety rules, expiries and other people's requests."""

import json
from datetime import timedelta

import pytest

from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.escalation import Escalation
from switches import services
from switches.models import Episode, Ramp
from switches.ramps import actions, live_ramps, resources
from switches.ramps.tests.ramp_helpers import (
    CHAT,
    GATED,
    REASON,
    SHELL,
    engage,
    get_outcome,
    get_person,
    get_ramp_state,
    get_share,
    get_state,
    list_actions,
    release,
    report_gate,
    run_tick,
    seconds,
    start_ramp,
)
from switches.rules import guard
from switches.rules.break_glass import SafetyRefused
from switches.rules.tests.factories import create_rule
from switches.tests import messages
from switches.tests.browsers import browser_as, page, text

pytestmark = pytest.mark.django_db
WHY = "not while the vendor is down"
FINANCE = "segment:finance"
A, B = "feature:a", "feature:b"
TO_THE_END = [{"percent": 5, "dwell_seconds": 0}, {"percent": 100, "dwell_seconds": 600}]


class TestLastOneOfARule:
    def create_rule_and_ramp(self, now):
        """Engage both switches of an `at_least_one` rule, and start a ramp of the first."""
        for switch in (A, B):
            engage(switch, now, by=get_person(), expires_in="60s")
        create_rule("at_least_one", A, B)
        return release(A, now, plan=TO_THE_END).ramp

    def given_two(self, now):
        return [self.create_rule_and_ramp(now), release(B, now, plan=TO_THE_END).ramp]

    def test_where_one_lets_everything_flow_the_other_does_not(self):
        now = db_now()
        self.given_two(now)

        for count in range(1, 5):
            run_tick(now + seconds(count))

        assert sorted([get_share(A), get_share(B)]) == [5, 100]

    def test_the_first_goes_through_and_the_other_holds(self):
        now = db_now()
        ramps = self.given_two(now)

        for count in (1, 2, 602, 603):
            run_tick(now + seconds(count))

        assert sorted(map(get_ramp_state, ramps)) == ["completed", "holding"]
        assert sorted([get_state(A), get_state(B)]) == ["ramping", "released"]

    def test_nor_is_it_released_at_once(self):
        now = db_now()
        self.create_rule_and_ramp(now)
        assert guard.refusals_to_release(B) == []
        run_tick(now + seconds(1))

        assert [refusal.rule for refusal in guard.refusals_to_release(B)] == ["at_least_one"]
        assert guard.refusals_to_release(A) == []

    def test_nor_is_its_engage_undone(self):
        now = db_now()
        self.create_rule_and_ramp(now)
        run_tick(now + seconds(1))

        with pytest.raises(SafetyRefused, match="at_least_one"):
            services.undo(scope="feature", key="b", actor=get_person(), now=now + seconds(2))

    def test_nor_does_it_go_at_its_expiry(self):
        now = db_now()
        self.create_rule_and_ramp(now)
        Episode.objects.filter(switch=B).update(on_expiry="release")  # As if set before the rule.
        run_tick(now + seconds(1))

        services.expire_due(now + seconds(61))

        assert (get_state(B), Episode.objects.get(switch=B).overdue) == ("engaged", True)


class TestExpiryWhileARampWaitsForApproval:
    def expire_during_approval(self, now, on_expiry):
        engage(FINANCE, now, expires_in="60s", on_expiry=on_expiry)
        done = release(FINANCE, now, plan=[{"percent": 100}], by=get_person())
        services.expire_due(now + seconds(61))
        return Ramp.objects.get(), Approval.objects.get(pk=done.approval.pk)

    def test_what_is_to_be_released_is(self):
        ramp, approval = self.expire_during_approval(db_now(), "release")

        assert get_state(FINANCE) == "released"
        assert (get_ramp_state(ramp), approval.state) == ("aborted", "void")
        assert "Expired" in get_outcome(ramp)

    def test_what_is_to_ramp_is_held(self):
        ramp, approval = self.expire_during_approval(db_now(), "ramp")

        assert (get_state(FINANCE), get_ramp_state(ramp)) == ("engaged", "pending_approval")
        assert (Episode.objects.get().overdue, approval.state) == (True, "pending")

    def test_the_digest_says_the_same(self, settings):
        messages.configure(settings)
        now = db_now()
        for number in range(6):
            engage(f"feature:goes-{number}", now, expires_in="60s", on_expiry="release")

        self.expire_during_approval(now, "release")

        (digest,) = messages.find("episodes.expired")
        assert FINANCE in digest.payload["released"]
        assert not digest.payload.get("held")


def test_a_permanent_switch_is_called_for_again_once_its_ramp_is_taken_back():
    now = db_now()
    episode = engage(CHAT, now, expires_in="permanent", by=get_person())
    approval = Approval.objects.get(kind="permanent")
    ada = get_person("approver", "ada")
    approvals.approve(approval_id=approval.pk, comment="", actor=ada, now=now)
    later = now + timedelta(days=8)
    assert services.call_for_reconfirmation(later) == 1
    ramp = release(CHAT, later).ramp
    assert services.call_for_reconfirmation(later + seconds(1)) == 0
    actions.abort(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=later + seconds(5))

    assert services.call_for_reconfirmation(later + seconds(6)) == 1
    assert services.call_for_reconfirmation(later + seconds(7)) == 0

    (called,) = Escalation.objects.filter(closed_at=None)
    assert (called.event, called.subject) == ("episode.reconfirm_due", f"episode:{episode.pk}")


class TestReleasedAtOnceWhileItRamps:
    def release_during_ramp(self, now):
        ramp = start_ramp(now)
        release(CHAT, now + seconds(1), mode="immediate", by=get_person("approver", "ada"))
        return ramp

    def test_it_left_everything_in_force(self):
        now = db_now()
        found = resources.get_ramp_resource(self.release_during_ramp(now).pk, now)

        assert (found["state"], found["allow_percent"]) == ("aborted", 100)
        assert found["outcome"].startswith("Released at once, by user:ada")

    @pytest.mark.parametrize("path", ["/ramps/{}/", "/ramps/{}/part/"])
    def test_its_page_does_not_say_engaged(self, path):
        ramp = self.release_during_ramp(db_now())

        html = page(browser_as("viewer").get(path.format(ramp.pk)))

        content = text(html)
        for part in ("100 %", "allowed: released at once", "Ended early", "Never started"):
            assert part in content
        for part in ("engaged again", "Taken back", "Aborted"):
            assert part not in content
        assert "ramp--completed" in html

    def test_also_where_it_could_not_be_taken_back_before(self):
        now = db_now()
        ramp = start_ramp(now)
        failed = {"state": "failed", "finished_at": now, "error": "No way back"}
        Job.objects.filter(pk=ramp.pk).update(**failed)
        release(CHAT, now + seconds(9), mode="immediate")

        assert live_ramps.get_percent(Ramp.objects.get(pk=ramp.pk)) == 100

    @pytest.mark.parametrize("ends", ["abort", "engage"])
    def test_one_that_was_taken_back_left_nothing_even_once_released(self, ends):
        now = db_now()
        ramp = start_ramp(now)
        if ends == "abort":
            actions.abort(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now + seconds(1))
        else:
            engage(CHAT, now + seconds(1))
        release(CHAT, now + seconds(2), mode="immediate")

        assert resources.get_ramp_resource(ramp.pk, now)["allow_percent"] == 0


class TestPendingRampsEndOnRecord:
    def request_release(self, now):
        done = release("global:all", now, by=get_person())
        return Ramp.objects.latest("pk"), done.approval

    @pytest.fixture
    def now(self):
        now = db_now()
        engage("global:all", now)
        return now

    def recorded(self):
        rows = AuditEntry.objects.filter(action="ramp.aborted", target="global:all")
        return [(json.loads(row.after)["ramp"], row.actor_name, row.reason) for row in rows]

    def test_denied(self, now):
        ramp, approval = self.request_release(now)
        eve = get_person("approver", "eve")
        approvals.deny(approval_id=approval.pk, comment="not yet", actor=eve, now=now)

        assert self.recorded() == [(ramp.pk, "eve", "Not approved: denied. not yet")]

    def test_nobody_decided_in_time(self, now):
        ramp, _ = self.request_release(now)
        approvals.expire_due_requests(now + timedelta(days=9))

        ((recorded, _, reason),) = self.recorded()
        assert (recorded, get_ramp_state(ramp)) == (ramp.pk, "aborted")
        assert "expired" in reason

    def test_asked_for_otherwise(self, now):
        ramp, _ = self.request_release(now)
        release("global:all", now + seconds(1), by=get_person(), mode="immediate")

        assert [recorded for recorded, *_ in self.recorded()] == [ramp.pk]

    def test_another_begun_instead(self, now):
        ramp, approval = self.request_release(now)
        begun = release("global:all", now + seconds(1)).ramp

        assert [recorded for recorded, *_ in self.recorded()] == [ramp.pk]
        assert get_ramp_state(begun) == "running"
        approval.refresh_from_db()
        assert approval.state == "void"
        assert list_actions("global:all")[-1] == "ramp.started"


class TestRequestsThatARampLeavesBehind:
    def test_a_manual_gate_that_nobody_answered_is_expired(self):
        now = db_now()
        manual = {"type": "manual", "timeout_seconds": 60}
        steps = [{"percent": 5, "dwell_seconds": 0, "gates": [manual]}, {"percent": 100}]
        ramp = start_ramp(now, steps, by=get_person())
        run_tick(now + seconds(1))
        run_tick(now + seconds(62))

        approval = Approval.objects.get(kind="ramp_gate")
        assert (approval.state, get_ramp_state(ramp)) == ("expired", "aborted")
        assert AuditEntry.objects.filter(action="approval.expired").count() == 1

    def test_one_that_still_has_time_is_void(self):
        now = db_now()
        gates = [{"type": "manual"}]
        steps = [{"percent": 5, "dwell_seconds": 0, "gates": gates}, {"percent": 100}]
        ramp = start_ramp(now, steps, by=get_person())
        run_tick(now + seconds(1))
        actions.abort(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now + seconds(2))

        assert Approval.objects.get(kind="ramp_gate").state == "void"

    def test_a_request_to_release_at_once_ends_with_a_ramp_that_is_taken_back(self):
        now = db_now()
        engage(FINANCE, now)
        waits = release(FINANCE, now, mode="immediate", by=get_person("operator", "lee")).approval
        ramp = release(FINANCE, now, plan=GATED, by=get_person()).ramp
        waits.refresh_from_db()
        assert waits.state == "pending"
        report_gate("fail", now + seconds(2))
        run_tick(now + seconds(3))

        waits.refresh_from_db()
        assert (get_ramp_state(ramp), waits.state) == ("aborted", "void")
        assert waits.comment == "The ramp failed, and the switch was engaged again."


def test_who_extends_what_ramps_is_told_that_it_ramps():
    now = db_now()
    start_ramp(now)
    extend = {"scope": "feature", "expires_in": "2d", "reason": REASON, "actor": SHELL, "now": now}

    with pytest.raises(Conflict, match="feature:chat is ramping"):
        services.extend(key="chat", **extend)
    with pytest.raises(Conflict, match="not engaged"):
        services.extend(key="other", **extend)
