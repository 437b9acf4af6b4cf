"""A ramp holds while operators hold a service that checks its switch."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.gates import holds
from controlplane.core.jobs.models import Job
from controlplane.core.models import Instance
from switches.models import Ramp
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import (
    CHAT,
    GATED,
    get_person,
    get_ramp_state,
    get_share,
    report_gate,
    run_tick,
    start_ramp,
)
from switches.tests import messages

pytestmark = pytest.mark.django_db

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
PLAIN = [{"percent": 5, "dwell_seconds": 60}, {"percent": 100, "dwell_seconds": 60}]
OF_SLO = [
    {"percent": 5, "dwell_seconds": 60},
    {"percent": 100, "gates": [{"type": "slo", "slo": "core-latency"}]},
]
WHY = "core-latency burned its error budget at 30× the allowed rate"


def checks(now, service="core", switch=CHAT, age=timedelta(0)):
    Instance.objects.create(
        id=f"{service}/a1", service=service, heard_at=now - age, checks={switch: {}}
    )


def place_hold(now, service="core", slos=(), key="alert:1"):
    holds.place_hold(key=key, service=service, slos=slos, why=WHY, path="/alerts/1/", now=now)


def start_held_ramp(now, plan=PLAIN, *, switch=CHAT, **more):
    """Start a ramp of a switch that a service checks, with operators holding that service."""
    ramp = start_ramp(now, plan, switch=switch, **more)
    checks(now, switch=switch)
    place_hold(now)
    return ramp


def describe_hold(since):
    return f"{WHY}, since {since:%-d %b %H:%M} UTC"


def reason(ramp):
    return Job.objects.get(pk=ramp.pk).hold_reason


def test_a_ramp_of_a_switch_that_the_service_checks_holds_and_says_why(settings):
    messages.configure(settings)
    now = db_now()
    ramp = start_held_ramp(now)

    run_tick(now + 2 * MINUTE)
    run_tick(now + 2 * MINUTE + timedelta(seconds=1))

    assert (get_ramp_state(ramp), get_share()) == ("holding", 5)
    held = f"Held: {describe_hold(now)}."
    assert reason(ramp) == held
    assert [message.payload["said"] for message in messages.find("ramp.held")] == [held]


def test_it_goes_on_as_soon_as_nothing_holds_it():
    now = db_now()
    ramp = start_held_ramp(now)
    run_tick(now + 2 * MINUTE)

    assert holds.release_holds(["alert:1", "alert:2"]) == 1
    run_tick(now + 3 * MINUTE)

    assert (get_ramp_state(ramp), get_share()) == ("running", 100)
    assert reason(ramp) == ""


def test_a_plan_with_a_gate_on_an_slo_of_the_service_holds_though_nobody_checks_the_switch():
    now = db_now()
    ramp = start_ramp(now, OF_SLO)
    place_hold(now, slos=["core-latency", "core-availability"])

    run_tick(now + 2 * MINUTE)

    assert get_ramp_state(ramp) == "holding"


@pytest.mark.parametrize(
    "stranger",
    [{"service": "billing"}, {"switch": "feature:other"}, {"age": 2 * HOUR}],
)
def test_a_ramp_that_has_nothing_to_do_with_the_service_goes_on(stranger):
    now = db_now()
    start_ramp(now, PLAIN)
    checks(now, **stranger)
    place_hold(now, slos=["billing-availability"])

    run_tick(now + 2 * MINUTE)

    assert get_share() == 100


def test_it_holds_without_limit_and_time_without_data_begins_after_it():
    now = db_now()
    ramp = start_held_ramp(now, GATED, expires_in="7d")
    run_tick(now + 2 * MINUTE)
    Instance.objects.update(heard_at=now + DAY)

    run_tick(now + DAY)
    assert get_ramp_state(ramp) == "holding"
    holds.release_holds(["alert:1"])
    run_tick(now + DAY + MINUTE)
    assert Ramp.objects.get().blind_since == now + DAY + MINUTE
    run_tick(now + DAY + 2 * HOUR)

    assert get_ramp_state(ramp) == "aborted"


def test_a_gate_that_fails_takes_it_back_all_the_same():
    now = db_now()
    ramp = start_held_ramp(now, GATED)
    run_tick(now + 2 * MINUTE)

    report_gate("fail", now + 3 * MINUTE)
    run_tick(now + 3 * MINUTE)

    assert (get_ramp_state(ramp), get_share()) == ("aborted", 0)


def test_it_does_not_hold_before_its_dwell_is_over():
    now = db_now()
    ramp = start_held_ramp(now)

    run_tick(now + timedelta(seconds=30))

    assert get_ramp_state(ramp) == "running"


def test_an_approver_may_let_it_go_on_in_spite_of_what_holds_it_and_nobody_else():
    now = db_now()
    ramp = start_held_ramp(now)
    run_tick(now + 2 * MINUTE)
    with pytest.raises(Forbidden):
        actions.advance(ramp_id=ramp.pk, reason=WHY, actor=get_person(), now=now + 3 * MINUTE)

    approver = get_person("approver", "ann")
    actions.advance(ramp_id=ramp.pk, reason=WHY, actor=approver, now=now + 3 * MINUTE)

    assert get_share() == 100


def test_whoever_asked_for_it_lets_nothing_flow_alone_while_something_holds_it():
    now = db_now()
    approver = get_person("approver", "ann")
    ramp = start_held_ramp(now, switch="segment:finance", by=approver)
    run_tick(now + 2 * MINUTE)
    assert get_ramp_state(ramp) == "holding"

    with pytest.raises(Forbidden, match="second"):
        actions.advance(ramp_id=ramp.pk, reason=WHY, actor=approver, now=now + 3 * MINUTE)


def test_two_that_hold_it_are_both_named_and_one_key_holds_once():
    now = db_now()
    ramp = start_held_ramp(now)
    place_hold(now + MINUTE)
    place_hold(now + MINUTE, key="alert:2")

    run_tick(now + 2 * MINUTE)

    assert len(holds.list_holds()) == 2
    assert reason(ramp) == f"Held: {describe_hold(now)}; {describe_hold(now + MINUTE)}."
