"""Actions end once their cause is gone, and nothing is done for the past."""

from datetime import timedelta

import pytest

from controlplane.core.gates.models import Hold
from controlplane.core.trip_requests.models import TripRequest
from slo.alerts import actions
from slo.arithmetic.minutes import end_of
from slo.evaluation import tick
from slo.models import Alert, Slo, SloStatus
from slo.tests import factories

from .scenarios import (
    BAD,
    GOOD,
    MINUTE,
    NOON,
    alert,
    create_burning_slo,
    due_at,
    evaluate_minutes,
    list_messages,
    update_thresholds,
)

pytestmark = pytest.mark.django_db

STOP = {"on": "page", "do": "trip", "switch": "experiment:new-planner", "expires_in": "2h"}
HOLD = {"on": "page", "do": "hold_ramps"}
CLOSED = [{**HOLD, "on_unknown": "act"}, {**STOP, "on_unknown": "act"}]


@pytest.fixture
def blind():
    """Return an SLO without data, and the actions that this has started."""
    slo = create_burning_slo(actions=CLOSED)
    Slo.objects.filter(pk=slo.pk).update(min_events=10**9)
    evaluate_minutes(NOON, NOON + 6)
    assert (Hold.objects.count(), trip_requests_over()) == (1, [False])
    return slo


def change(slo, **fields):
    Slo.objects.filter(pk=slo.pk).update(**fields)


def trip_requests_over():
    return list(TripRequest.objects.order_by("pk").values_list("is_over", flat=True))


@pytest.mark.parametrize(
    "changed",
    [
        {"removed_at": due_at(NOON)},
        {"actions": []},
        {"actions": [HOLD, STOP]},
    ],
)
def test_what_failed_closed_is_over_once_nobody_wants_that_any_more(blind, changed):
    change(blind, **changed)

    evaluate_minutes(NOON + 7, NOON + 8)

    assert not Hold.objects.exists()
    assert trip_requests_over() == [False, True]


def test_a_hold_that_stands_in_another_place_now_goes_on_as_that_one(blind):
    change(blind, actions=CLOSED[::-1])

    evaluate_minutes(NOON + 7)

    assert Hold.objects.get().key == f"unknown:{blind.pk}.1"


def test_what_failed_closed_stays_while_its_slo_can_not_be_judged(blind):
    change(blind, rules=[{"long": "1h"}])

    evaluate_minutes(NOON + 7, NOON + 8)

    assert Hold.objects.count() == 1
    assert trip_requests_over() == [False]


def test_holds_of_alerts_that_are_gone_or_of_actions_taken_out_are_released():
    slo = create_burning_slo(after=[BAD] * 10, actions=[HOLD, STOP])
    evaluate_minutes(NOON, NOON + 3)
    Hold.objects.create(key="alert:0", service="core", why="x", since=due_at(NOON))
    Hold.objects.create(key="outage:0", service="core", why="x", since=due_at(NOON))
    evaluate_minutes(NOON + 4)
    keys = Hold.objects.order_by("pk").values_list("key", flat=True)
    assert list(keys) == [f"alert:{alert().pk}", "outage:0"]

    change(slo, actions=[STOP])
    evaluate_minutes(NOON + 5)

    assert list(keys.all()) == ["outage:0"]
    assert trip_requests_over() == [False]


def test_a_clock_that_was_set_back_does_not_put_off_what_fails_closed():
    slo = create_burning_slo(actions=CLOSED)
    change(slo, min_events=10**9)
    evaluate_minutes(NOON)
    row = SloStatus.objects.get()
    row.rules[0]["since"] = (due_at(NOON) + timedelta(days=2)).isoformat()
    row.since = due_at(NOON) + timedelta(days=2)
    row.save()

    evaluate_minutes(NOON + 1, NOON + 6)

    assert Hold.objects.count() == 1
    assert SloStatus.objects.get().since == end_of(NOON + 1)


def test_a_look_at_thresholds_between_two_missed_minutes_acts_upon_no_slo(
    monkeypatch, configured_targets
):
    create_burning_slo(after=[*[BAD] * 2, *[GOOD] * 20], actions=[STOP])
    evaluate_minutes(NOON)
    judged = tick._evaluate_minute

    def and_look(minute, now, *, is_last):
        is_done = judged(minute, now, is_last=is_last)
        if minute == NOON + 3:
            assert alert().resolved_at is None
            update_thresholds(now)
        return is_done

    monkeypatch.setattr(tick, "_evaluate_minute", and_look)
    tick.evaluate_due_minutes(due_at(NOON + 20))

    assert not TripRequest.objects.exists()
    assert not list_messages("slo.alert")
    assert len(list_messages("slo.alerts_missed")) == 1


def test_after_a_gap_an_alert_ends_after_two_known_quiet_minutes_as_ever():
    create_burning_slo(after=[*[BAD] * 3, *[GOOD] * 200])
    evaluate_minutes(NOON, NOON + 3)

    tick.evaluate_due_minutes(due_at(NOON + 100 + tick.MAX_MISSED_MINUTES))

    assert alert().resolved_at == end_of(NOON + 101)


def test_the_alert_of_an_slo_that_was_made_anew_does_not_go_on_as_that_of_the_old_one():
    old = create_burning_slo(after=[BAD] * 10)
    evaluate_minutes(NOON, NOON + 3)
    change(old, removed_at=due_at(NOON + 3))
    new = create_burning_slo(after=[BAD] * 10)

    evaluate_minutes(NOON + 4, NOON + 5)

    first, second = Alert.objects.order_by("pk")
    assert (first.slo_id, first.resolved_because) == (old.pk, tick.SLO_REMOVED)
    assert (second.slo_id, second.resolved_at) == (new.pk, None)


def test_what_was_done_for_alerts_that_wait_to_be_told_of_is_not_asked_for_one_by_one(
    django_assert_max_num_queries,
):
    slo = factories.slo(actions=[HOLD, STOP])
    for number in range(20):
        Alert.objects.create(
            kind="burn", rule=f"r{number}", subject=slo.name, service="core", slo=slo,
            severity="critical", label="page", summary="x",
            opened_at=due_at(NOON), firing_at=due_at(NOON),
        )  # fmt: skip
    waiting = Alert.objects.select_related("slo")
    planned = [action for one in waiting for action in actions.plan_alert_actions(one)]
    actions.perform_actions(planned, due_at(NOON))
    assert (Hold.objects.count(), TripRequest.objects.count()) == (20, 20)

    with django_assert_max_num_queries(2):
        actions.perform_actions(planned, due_at(NOON) + MINUTE)
