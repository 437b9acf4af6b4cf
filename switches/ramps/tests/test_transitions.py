"""A ramp from start to end: steps, dwell, gates, holds, compensation."""

from datetime import timedelta

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.jobs.models import Job, JobEffect, JobStep
from switches import services
from switches.models import Episode, Publication, Ramp, Switch
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import (
    CHAT,
    GATED,
    SHELL,
    SMOKE,
    engage,
    get_outcome,
    get_person,
    get_ramp_state,
    get_share,
    get_state,
    get_step,
    list_actions,
    release,
    report_gate,
    run_tick,
    seconds,
    start_ramp,
)
from switches.rules.tests.factories import create_rule

pytestmark = pytest.mark.django_db
WHY = "watching the dashboards first"
TWO = [{"percent": 5, "dwell_seconds": 60}, {"percent": 100, "dwell_seconds": 60}]


def test_begins_with_its_first_share_published():
    now = db_now()
    engage(CHAT, now)
    version = Publication.objects.get().version

    ramp = release(CHAT, now).ramp

    assert (get_ramp_state(ramp), get_share(), get_state()) == ("running", 5, "ramping")
    assert Publication.objects.get().version == version + 1
    assert get_step(ramp).due_at == now + timedelta(minutes=5)
    assert list_actions() == ["switch.engaged", "ramp.started"]


def test_goes_through_its_steps_to_the_end():
    now = db_now()
    ramp = start_ramp(now)
    recorded = []

    for count in range(1, 17):
        run_tick(now + seconds(61 * count))
        recorded.append(get_share() if get_state() == "ramping" else get_state())

    assert recorded == [5] * 4 + [25] * 5 + [100] * 5 + ["released"] * 2
    assert get_ramp_state(ramp) == "completed"
    assert list_actions() == [
        "switch.engaged",
        *("ramp.started", "ramp.advanced", "ramp.advanced", "switch.released"),
    ]
    episode = Episode.objects.get()
    assert episode.ended_how == "released"
    assert [found.state for found in JobStep.objects.order_by("index")] == ["passed"] * 3


def test_nothing_moves_a_second_before_its_dwell_is_over():
    now = db_now()
    start_ramp(now)

    assert run_tick(now + timedelta(minutes=5) - seconds(1)) == 0
    assert get_share() == 5
    assert run_tick(now + timedelta(minutes=5)) == 1
    assert get_share() == 25


def test_moves_one_step_a_look_however_late():
    now = db_now()
    start_ramp(now)

    run_tick(now + timedelta(days=2))

    assert get_share() == 25


def test_each_move_has_its_side_effects_once():
    now = db_now()
    ramp = start_ramp(now, TWO)
    for count in (60, 61, 122, 123, 124):
        run_tick(now + seconds(count))

    keys = JobEffect.objects.order_by("pk").values_list("key", flat=True)
    prefix = f"ramp:{ramp.pk}"
    assert list(keys) == [f"{prefix}:0:publish", f"{prefix}:1:publish", f"{prefix}:1:release"]


def test_passes_on_what_an_outsider_says():
    now = db_now()
    start_ramp(now, GATED)
    report_gate("ok", now + seconds(50))

    run_tick(now + seconds(60))

    assert get_share() == 100


def test_a_verdict_from_before_the_step_is_no_data():
    now = db_now()
    report_gate("ok", now - seconds(1))
    ramp = start_ramp(now, [{**GATED[0], "dwell_seconds": 5}, GATED[1]])

    run_tick(now + seconds(5))

    assert (get_ramp_state(ramp), get_share()) == ("holding", 5)


def test_without_data_it_holds_until_data_comes():
    now = db_now()
    ramp = start_ramp(now, GATED)

    run_tick(now + seconds(60))
    held = Job.objects.get(pk=ramp.pk)
    run_tick(now + seconds(90))
    report_gate("ok", now + seconds(100))
    run_tick(now + seconds(101))

    assert "smoke" in held.hold_reason
    assert (get_ramp_state(ramp), get_share()) == ("running", 100)
    assert Job.objects.get(pk=ramp.pk).hold_reason == ""
    assert list_actions().count("ramp.held") == 1
    assert Ramp.objects.get().blind_since is None


def test_without_data_for_too_long_it_goes_back():
    now = db_now()
    ramp = start_ramp(now, [{**GATED[0], "max_hold_seconds": 30}, GATED[1]])

    run_tick(now + seconds(60))
    run_tick(now + seconds(89))
    assert (get_ramp_state(ramp), get_share()) == ("holding", 5)
    run_tick(now + seconds(90))

    assert (get_ramp_state(ramp), get_share(), get_state()) == ("aborted", 0, "engaged")
    assert "smoke" in get_outcome(ramp)
    assert list_actions()[-1] == "ramp.compensated"


def test_a_gate_that_fails_within_the_dwell_takes_it_back_at_once():
    now = db_now()
    ramp = start_ramp(now, GATED)
    report_gate("fail", now + seconds(10), errors=12)

    run_tick(now + seconds(11))

    assert (get_ramp_state(ramp), get_share(), get_state()) == ("aborted", 0, "engaged")
    row = AuditEntry.objects.get(action="ramp.compensated")
    assert '"errors":12' in row.after
    assert get_step(ramp).state == "failed"
    episode = Episode.objects.get()
    assert (episode.on_expiry, episode.overdue) == ("ramp", False)


def test_what_is_over_does_not_move_again():
    now = db_now()
    start_ramp(now, GATED)
    report_gate("fail", now + seconds(1))
    run_tick(now + seconds(2))
    version = Publication.objects.get().version

    assert run_tick(now + seconds(60)) == 0
    assert Publication.objects.get().version == version


def test_it_can_be_released_again_after_it_went_back():
    now = db_now()
    first = start_ramp(now, GATED)
    report_gate("fail", now + seconds(1))
    run_tick(now + seconds(2))

    second = release(CHAT, now + seconds(3)).ramp

    assert second.pk != first.pk
    assert (get_share(), second.episode_id) == (5, first.episode_id)


class TestPaused:
    def test_has_the_rest_of_its_dwell_before_it_when_it_is_resumed(self):
        now = db_now()
        ramp = start_ramp(now, TWO)
        verb = {"ramp_id": ramp.pk, "reason": WHY, "actor": get_person()}

        actions.pause(**verb, now=now + seconds(20))
        run_tick(now + seconds(500))
        assert (get_ramp_state(ramp), get_share()) == ("paused", 5)
        actions.resume(**verb, now=now + seconds(1000))

        assert get_step(ramp).due_at == now + seconds(1040)
        assert run_tick(now + seconds(1039)) == 0
        assert run_tick(now + seconds(1040)) == 1
        assert get_share() == 100
        assert list_actions()[2:4] == ["ramp.paused", "ramp.resumed"]

    def test_past_its_dwell_goes_on_at_once(self):
        now = db_now()
        ramp = start_ramp(now, GATED)
        run_tick(now + seconds(60))
        verb = {"ramp_id": ramp.pk, "reason": WHY, "actor": SHELL}

        actions.pause(**verb, now=now + seconds(70))
        report_gate("ok", now + seconds(90))
        actions.resume(**verb, now=now + seconds(95))
        run_tick(now + seconds(96))

        assert get_share() == 100

    def test_is_not_blind_meanwhile(self):
        now = db_now()
        ramp = start_ramp(now, [{**GATED[0], "max_hold_seconds": 30}, GATED[1]])
        verb = {"ramp_id": ramp.pk, "reason": WHY, "actor": SHELL}
        run_tick(now + seconds(60))
        actions.pause(**verb, now=now + seconds(80))
        run_tick(now + seconds(500))
        actions.resume(**verb, now=now + seconds(600))

        run_tick(now + seconds(601))
        run_tick(now + seconds(609))
        assert get_ramp_state(ramp) == "holding"
        run_tick(now + seconds(610))

        assert get_ramp_state(ramp) == "aborted"
        assert list_actions().count("ramp.held") == 1

    def test_is_taken_back_by_a_gate_that_fails(self):
        now = db_now()
        ramp = start_ramp(now, GATED)
        actions.pause(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now + seconds(1))
        report_gate("fail", now + seconds(2))

        run_tick(now + seconds(3))

        assert (get_ramp_state(ramp), get_share()) == ("aborted", 0)

    @pytest.mark.parametrize("verb", [actions.pause, actions.advance])
    def test_is_only_resumed_or_aborted(self, verb):
        now = db_now()
        ramp = start_ramp(now, TWO)
        actions.pause(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now)

        with pytest.raises(Conflict, match="paused"):
            verb(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now)


class TestAdvanced:
    def test_passes_over_the_dwell_and_missing_data(self):
        now = db_now()
        ramp = start_ramp(now, GATED)

        actions.advance(
            ramp_id=ramp.pk, reason=WHY, actor=get_person("approver", "ada"), now=now + seconds(1)
        )

        assert (get_ramp_state(ramp), get_share()) == ("running", 100)
        assert get_step(ramp, 1).due_at == now + seconds(301)

    def test_of_the_last_step_releases(self):
        now = db_now()
        ramp = start_ramp(now, [{"percent": 100}])

        actions.advance(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now + seconds(1))

        assert (get_ramp_state(ramp), get_state()) == ("completed", "released")

    def test_takes_an_approver(self):
        ramp = start_ramp(db_now(), TWO)

        with pytest.raises(Forbidden, match="approver"):
            actions.advance(ramp_id=ramp.pk, reason=WHY, actor=get_person(), now=db_now())

    def test_not_past_a_gate_that_fails(self):
        now = db_now()
        plan = [{**GATED[0], "gates": [SMOKE, {"type": "manual"}]}, GATED[1]]
        ramp = start_ramp(now, plan)
        data = get_step(ramp).data
        data["gates"][0] |= {"verdict": "fail", "evidence": {}}
        JobStep.objects.filter(pk=get_step(ramp).pk).update(data=data)

        with pytest.raises(Conflict, match="A gate failed: external gate smoke"):
            actions.advance(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now + seconds(1))


@pytest.mark.parametrize("reason", ["", "   ", "\x1b[2J"])
def test_every_intervention_says_why(reason):
    ramp = start_ramp(db_now(), TWO)

    for verb in (actions.advance, actions.pause, actions.resume, actions.abort):
        with pytest.raises(InvalidInput):
            verb(ramp_id=ramp.pk, reason=reason, actor=SHELL, now=db_now())
    assert get_ramp_state(ramp) == "running"


class TestAborted:
    @pytest.mark.parametrize("paused", [False, True])
    def test_is_engaged_again_at_once(self, paused):
        now = db_now()
        ramp = start_ramp(now, TWO)
        verb = {"ramp_id": ramp.pk, "reason": WHY, "actor": get_person(), "now": now + seconds(1)}
        if paused:
            actions.pause(**verb)

        actions.abort(**verb)

        assert (get_ramp_state(ramp), get_share(), get_state()) == ("aborted", 0, "engaged")
        assert get_outcome(ramp) == f"Aborted by user:kim: {WHY}"
        assert list_actions()[-1] == "ramp.aborted"
        assert Episode.objects.get().ended_at is None

    def test_of_a_permanent_episode_leaves_it_permanent(self):
        now = db_now()
        engage(CHAT, now)
        Episode.objects.update(permanent=True, expires_at=None, reconfirm_due_at=now + seconds(5))
        ramp = release(CHAT, now).ramp

        assert services.call_for_reconfirmation(now + seconds(6)) == 0
        actions.abort(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now + seconds(7))

        episode = Episode.objects.get()
        assert (episode.permanent, episode.expires_at, episode.overdue) == (True, None, False)
        assert get_share() == 0
        assert services.call_for_reconfirmation(now + seconds(8)) == 1

    def test_twice_is_told(self):
        now = db_now()
        ramp = start_ramp(now, TWO)
        actions.abort(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now)

        with pytest.raises(Conflict, match="This ramp is aborted"):
            actions.abort(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now)


class TestReleasedAtOnce:
    def test_ends_the_ramp(self):
        now = db_now()
        ramp = start_ramp(now, TWO)

        release(CHAT, now + seconds(5), by=get_person("approver", "ada"), mode="immediate")

        assert (get_ramp_state(ramp), get_state()) == ("aborted", "released")
        assert get_outcome(ramp).startswith("Released at once, by user:ada")
        assert run_tick(now + seconds(60)) == 0

    def test_is_refused_to_an_operator(self):
        now = db_now()
        ramp = start_ramp(now, TWO)

        with pytest.raises(Forbidden):
            release(CHAT, now + seconds(5), by=get_person(), mode="immediate")

        assert (get_ramp_state(ramp), get_share()) == ("running", 5)


def test_second_release_by_ramp_is_told_who_began_the_first():
    now = db_now()
    ramp = start_ramp(now, TWO, by=get_person())

    with pytest.raises(Conflict, match=r"already ramping, started by user:kim") as refused:
        release(CHAT, now)

    assert refused.value.extra["ramp"] == ramp.pk


class TestRules:
    PLAN = [
        {"percent": 5, "dwell_seconds": 60, "max_hold_seconds": 100},
        {"percent": 100, "dwell_seconds": 60},
    ]

    def at_the_door(self, now):
        """Start a ramp whose step to 100 % a rule forbids, as its switch is the last engaged."""
        ramp = start_ramp(now, self.PLAN)
        create_rule("at_least_one", "feature:*", name="one way")
        run_tick(now + seconds(60))
        return ramp

    def test_one_in_the_way_of_everything_holds_it_and_is_named(self):
        ramp = self.at_the_door(db_now())

        assert (get_ramp_state(ramp), get_share()) == ("holding", 5)
        assert "one way" in Job.objects.get(pk=ramp.pk).hold_reason
        assert list_actions().count("ramp.held") == 1

    def test_it_goes_on_once_no_rule_is_in_the_way(self):
        now = db_now()
        ramp = self.at_the_door(now)
        run_tick(now + seconds(70))
        engage("feature:other", now + seconds(80))

        run_tick(now + seconds(81))

        assert (get_ramp_state(ramp), get_share()) == ("running", 100)
        assert list_actions().count("ramp.held") == 1

    def test_it_goes_back_after_so_long(self):
        now = db_now()
        ramp = self.at_the_door(now)

        run_tick(now + seconds(159))
        assert get_ramp_state(ramp) == "holding"
        run_tick(now + seconds(161))

        assert (get_ramp_state(ramp), get_share()) == ("aborted", 0)
        assert "one way" in get_outcome(ramp)

    def test_at_the_end_it_is_asked_once_more(self):
        now = db_now()
        ramp = start_ramp(now, [{"percent": 100, "dwell_seconds": 60}])
        create_rule("at_least_one", "feature:*", name="one way")

        run_tick(now + seconds(60))

        assert (get_ramp_state(ramp), get_state(), get_share()) == ("holding", "ramping", 100)

    def test_one_that_was_overridden_is_not_asked_again(self):
        now = db_now()
        create_rule("at_least_one", "feature:*", name="one way")
        engage(CHAT, now)
        glass = {"rule": "one way", "reason": "both regions double charge, INC-4411"}
        ada = get_person("approver", "ada")
        ramp = release(CHAT, now, by=ada, plan=self.PLAN, break_glass=glass).ramp

        run_tick(now + seconds(60))
        run_tick(now + seconds(125))

        assert get_ramp_state(ramp) == "completed"

    def test_nobody_advances_past_one(self):
        now = db_now()
        ramp = self.at_the_door(now)

        with pytest.raises(Conflict, match="one way"):
            actions.advance(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=now + seconds(500))

        assert (get_ramp_state(ramp), get_share()) == ("holding", 5)

    def test_a_protected_one_ramps_without_asking(self):
        now = db_now()
        create_rule("protected", CHAT)

        ramp = start_ramp(now, TWO, by=get_person())

        assert get_ramp_state(ramp) == "running"


def test_broken_switch_is_told_as_it_was_before():
    now = db_now()
    ramp = start_ramp(now, GATED)
    report_gate("fail", now + seconds(1))
    run_tick(now + seconds(2))

    row = AuditEntry.objects.get(action="ramp.compensated")
    assert '"state":"ramping"' in row.before
    assert '"state":"engaged"' in row.after
    assert f'"ramp":{ramp.pk}' in row.after
    assert Switch.objects.get().version == Publication.objects.get().version
