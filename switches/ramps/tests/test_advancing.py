"""Advancing a ramp: gates are evaluated anew, one step at a time, large shares by two people."""

import pytest

from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden
from controlplane.core.http.tests.callers import as_role, person, with_token
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import (
    CHAT,
    GATED,
    MANUAL,
    THREE,
    add_rule,
    engage,
    get_person,
    get_ramp_state,
    get_share,
    get_state,
    get_step,
    release,
    report_gate,
    run_tick,
    seconds,
    start_ramp,
)
from switches.tests.browsers import browser_as, page

pytestmark = pytest.mark.django_db

WHY = "the dashboards are flat"
FINANCE = "segment:finance"


def advance(ramp, now, *, by=None, **more):
    actor = by or get_person("approver", "ada")
    return actions.advance(ramp_id=ramp.pk, reason=WHY, actor=actor, now=now, **more)


LARGE = [{"percent": share, "dwell_seconds": 60} for share in (5, 25, 99.99, 100)]


def test_whoever_asked_for_the_ramp_of_a_segment_does_not_let_most_flow_early_alone():
    now, ada = db_now(), get_person("approver", "ada")
    ramp = start_ramp(now, LARGE, switch=FINANCE, by=ada)
    advance(ramp, now + seconds(1), by=ada)

    with pytest.raises(Forbidden, match=r"Allowing 99.99 % before the dwell time ends"):
        advance(ramp, now + seconds(2), by=ada)

    assert get_share(FINANCE) == 25
    advance(ramp, now + seconds(3), by=get_person("approver", "eve"))
    assert get_share(FINANCE) == 99.99


class TestAdvanceJudgesByNow:
    def test_gate_that_failed_since_the_last_look_is_not_passed_over(self):
        now = db_now()
        ramp = start_ramp(now, GATED)
        report_gate("ok", now + seconds(1))
        run_tick(now + seconds(2))
        report_gate("fail", now + seconds(3))

        with pytest.raises(Conflict, match="A gate failed: external gate smoke"):
            advance(ramp, now + seconds(3.5))

        assert (get_ramp_state(ramp), get_share()) == ("running", 5)

    def test_manual_gate_that_was_just_denied_is_not_passed_over(self):
        now = db_now()
        ramp = start_ramp(now, [{**GATED[0], "gates": [MANUAL]}, GATED[1]], by=get_person())
        run_tick(now + seconds(61))
        approval = Approval.objects.get(kind="ramp_gate")
        eve = get_person("approver", "eve")
        approvals.deny(approval_id=approval.pk, comment="no", actor=eve, now=now + seconds(62))

        with pytest.raises(Conflict, match="A gate failed"):
            advance(ramp, now + seconds(62.5))

        assert get_share() == 5

    def test_what_was_passed_over_is_kept(self):
        now = db_now()
        ramp = start_ramp(now, GATED)
        report_gate("ok", now + seconds(1))

        advance(ramp, now + seconds(2))

        (gate,) = get_step(ramp).data["gates"]
        assert (gate["verdict"], gate["evidence"]["said"]) == ("pass", "ok")

    def test_step_that_was_left_already_is_not_left_twice(self):
        now = db_now()
        ramp = start_ramp(now, THREE)
        advance(ramp, now + seconds(1), step_index=0)

        with pytest.raises(Conflict, match="advanced it to step 2 of"):
            advance(ramp, now + seconds(2), step_index=0)

        assert get_share() == 25

    def test_over_http_the_step_may_be_named(self):
        ramp = start_ramp(db_now(), THREE)
        api = as_role("approver")
        path, body = f"/ramps/{ramp.pk}/advance", {"reason": WHY, "step_index": 0}

        assert [api.post(path, body).status_code for _ in range(2)] == [200, 409]
        assert api.post(path, {**body, "step_index": "1"}).status_code == 400
        assert api.post(path, {**body, "step_index": True}).status_code == 400
        assert get_share() == 25

    def test_form_sent_twice_passes_one_step(self):
        ramp = start_ramp(db_now(), THREE)
        client = browser_as("approver")
        path = f"/ramps/{ramp.pk}/advance/"
        assert '<input type="hidden" name="step" value="0">' in page(client.get(path))

        sent = [client.post(path, {"reason": WHY, "step": "0"}).status_code for _ in range(2)]

        assert (sent, get_share()) == ([302, 409], 25)


class TestAllAtOnceTakesTwo:
    def ramping(self, switch, now, by, plan=THREE):
        if switch == CHAT:
            add_rule("protected", CHAT)
        engage(switch, now)
        return release(switch, now, by=by, plan=plan).ramp

    @pytest.mark.parametrize("switch", [FINANCE, CHAT])
    def test_who_asked_advances_to_less_but_not_to_all(self, switch):
        now = db_now()
        ada = get_person("approver", "ada")
        ramp = self.ramping(switch, now, ada)
        advance(ramp, now + seconds(1), by=ada)
        assert get_share(switch) == 25

        with pytest.raises(Forbidden, match="second"):
            advance(ramp, now + seconds(2), by=ada)

        assert get_share(switch) == 25
        advance(ramp, now + seconds(3), by=get_person("approver", "eve"))
        assert get_share(switch) == 100

    def test_who_asked_does_not_cut_the_last_dwell_short(self):
        now = db_now()
        ada = get_person("approver", "ada")
        ramp = self.ramping(FINANCE, now, ada)
        for count in (61, 122):
            run_tick(now + seconds(count))

        with pytest.raises(Forbidden):
            advance(ramp, now + seconds(123), by=ada)

        assert (get_share(FINANCE), get_state(FINANCE)) == (100, "ramping")

    def test_who_asked_does_not_pass_over_missing_data_after_the_dwell(self):
        now = db_now()
        ada = get_person("approver", "ada")
        ramp = self.ramping(FINANCE, now, ada, GATED)
        run_tick(now + seconds(61))

        with pytest.raises(Forbidden):
            advance(ramp, now + seconds(62), by=ada)

        report_gate("ok", now + seconds(63))
        advance(ramp, now + seconds(63.5), by=ada)
        assert get_share(FINANCE) == 100

    def test_token_is_no_second_person(self):
        now = db_now()
        ramp = self.ramping(FINANCE, now, get_person())
        advance(ramp, now)
        eve = with_token("ramps:write", owner=person("approver", "eve"))

        refused = eve.post(f"/ramps/{ramp.pk}/advance", {"reason": WHY})

        assert (refused.status_code, get_share(FINANCE)) == (403, 25)

    def test_of_a_feature_one_approver_is_enough(self):
        now = db_now()
        ada = get_person("approver", "ada")
        ramp = start_ramp(now, THREE, by=ada)

        for count in (1, 2, 3):
            advance(ramp, now + seconds(count), by=ada)

        assert get_state() == "released"
