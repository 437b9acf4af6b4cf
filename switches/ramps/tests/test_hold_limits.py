"""Limits of holds for rules and missing data, in paused or edited ramps, with clocks set back."""

from datetime import timedelta

import pytest

from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.gates.models import Gate
from controlplane.core.jobs.models import Job
from switches.models import Ramp
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import MANUAL, THREE, add_rule, get_step

from .ramp_helpers import (
    CHAT,
    GATED,
    SMOKE,
    get_outcome,
    get_person,
    get_ramp_state,
    get_share,
    list_actions,
    report_gate,
    run_tick,
    seconds,
    start_ramp,
)

pytestmark = pytest.mark.django_db

WHY = "the dashboards are flat"
HOURS = timedelta(hours=3)


class TestClockThatWasSetBack:
    GATED_LATER = [THREE[0], {**GATED[0], "percent": 50}, THREE[2]]

    def test_step_begins_anew_and_its_gate_is_heard(self):
        now = db_now()
        slo = {"type": "slo", "slo": "chat"}
        plan = [THREE[0], {**self.GATED_LATER[1], "gates": [SMOKE, slo]}, THREE[2]]
        ramp = start_ramp(now, plan)
        run_tick(now + HOURS)
        assert get_share() == 50

        run_tick(now + seconds(100))
        assert (get_step(ramp, 1).started_at, get_step(ramp, 1).due_at) == (
            now + seconds(100),
            now + seconds(160),
        )
        assert Gate.objects.get().since == now + seconds(100)
        report_gate("fail", now + seconds(101))
        run_tick(now + seconds(102))

        assert (get_ramp_state(ramp), get_share()) == ("aborted", 0)

    def test_ramp_goes_on(self):
        now = db_now()
        start_ramp(now, THREE)
        run_tick(now + HOURS)

        for count in (100, 159):
            run_tick(now + seconds(count))
        assert get_share() == 25
        run_tick(now + seconds(160))

        assert get_share() == 100

    def test_dwell_that_was_resumed_ahead_is_no_longer_than_it_was(self):
        now = db_now()
        ramp = start_ramp(now, THREE)
        verb = {"ramp_id": ramp.pk, "reason": WHY, "actor": get_person()}
        actions.pause(**verb, now=now + seconds(10))
        actions.resume(**verb, now=now + HOURS)

        run_tick(now + seconds(20))

        assert get_step(ramp).due_at == now + seconds(80)

    def test_pause_that_began_ahead_keeps_what_was_left(self):
        now = db_now()
        ramp = start_ramp(now, [{"percent": 5, "dwell_seconds": 20000}, THREE[2]])
        verb = {"ramp_id": ramp.pk, "reason": WHY, "actor": get_person()}
        actions.pause(**verb, now=now + HOURS)

        run_tick(now + seconds(50))

        assert Job.objects.get().paused_at == now + seconds(50)
        assert get_step(ramp).due_at == now + seconds(50 + 20000) - HOURS

    def test_blindness_that_began_ahead_begins_now(self):
        now = db_now()
        ramp = start_ramp(now, GATED)
        run_tick(now + HOURS)
        assert Ramp.objects.get().blind_since == now + HOURS

        run_tick(now + seconds(100))

        assert Ramp.objects.get().blind_since == now + seconds(100)
        assert get_ramp_state(ramp) == "holding"

    def test_a_clock_that_is_a_little_ahead_changes_nothing(self):
        now = db_now()
        ramp = start_ramp(now, GATED)

        run_tick(now - seconds(59))

        assert get_step(ramp).started_at == now


class TestHowLongItMayHold:
    BRIEF = [{**GATED[0], "dwell_seconds": 0, "max_hold_seconds": 60}, GATED[1]]

    def test_time_of_a_rule_is_not_charged_to_missing_data_nor_the_other_way_round(self):
        now = db_now()
        ramp = start_ramp(now, self.BRIEF)
        run_tick(now + seconds(1))
        rule = add_rule("at_least_one", CHAT)
        report_gate("ok", now + seconds(50))
        run_tick(now + seconds(51))
        run_tick(now + seconds(105))
        assert (get_ramp_state(ramp), "one way" in Job.objects.get().hold_reason) == (
            "holding",
            True,
        )
        rule.delete()

        run_tick(now + seconds(115))
        run_tick(now + seconds(174))
        assert get_ramp_state(ramp) == "holding"
        run_tick(now + seconds(175))

        assert get_ramp_state(ramp) == "aborted"
        assert get_outcome(ramp).startswith("No data for 1 min")

    def test_pausing_again_and_again_neither_prolongs_it_nor_tells_of_it_anew(self):
        now = db_now()
        ramp = start_ramp(now, self.BRIEF)
        verb = {"ramp_id": ramp.pk, "reason": WHY, "actor": get_person()}
        run_tick(now)
        for count in (20, 40):
            actions.pause(**verb, now=now + seconds(count))
            actions.resume(**verb, now=now + seconds(count + 10))
            run_tick(now + seconds(count + 11))
        run_tick(now + seconds(79))
        assert get_ramp_state(ramp) == "holding"
        run_tick(now + seconds(80))

        assert get_ramp_state(ramp) == "aborted"
        assert list_actions().count("ramp.held") == 1

    def test_editing_the_request_of_a_manual_gate_does_not_prolong_it(self):
        now = db_now()
        ramp = start_ramp(now, [{**self.BRIEF[0], "gates": [MANUAL]}, GATED[1]], by=get_person())
        run_tick(now)
        first = Approval.objects.get(kind="ramp_gate")

        again = approvals.edit_request(
            approval_id=first.pk,
            reason="seen in two regions",
            actor=get_person(),
            now=now + seconds(30),
        )
        run_tick(now + seconds(61))

        assert again.expires_at == first.expires_at
        assert get_ramp_state(ramp) == "aborted"
        assert get_outcome(ramp) == "A gate failed: a person's approval: not approved within 1 min."
