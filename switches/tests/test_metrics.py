"""Prometheus metrics of switches."""

from datetime import timedelta

import pytest

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from switches import metrics, services
from switches.models import Episode, Switch

ACTOR = system_actor("test")


def series(now):
    """Return the series as {(scope, key): value}."""
    family, _ = metrics.collect_engaged(now)
    return {(s.labels["scope"], s.labels["key"]): s.value for s in family.samples}


def engage(key):
    services.engage(
        scope="segment",
        key=key,
        reason="card payments charged twice",
        expires_in="24h",
        actor=ACTOR,
        now=db_now(),
    )


def release(key):
    services.release(
        scope="segment",
        key=key,
        justification="provider confirmed the fix",
        mode="immediate",
        actor=ACTOR,
        now=db_now(),
    )


@pytest.mark.django_db
def test_a_switch_is_one_while_engaged_and_zero_afterwards():
    engage("finance")
    engage("chat")
    release("chat")

    assert series(db_now()) == {("segment", "finance"): 1, ("segment", "chat"): 0}


@pytest.mark.django_db
def test_a_switch_that_was_only_named_or_released_long_ago_has_no_series():
    engage("chat")
    release("chat")
    Switch.objects.create(
        id="feature:search", scope="feature", key="search", registered_at=db_now()
    )

    assert series(db_now() + timedelta(minutes=16)) == {}


@pytest.mark.django_db
def test_all_switches_are_counted_by_scope_and_state():
    engage("finance")
    engage("chat")
    engage("search")
    release("chat")
    Episode.objects.filter(switch_id="segment:search").update(allow_percent=25)

    _, family = metrics.collect_engaged(db_now())

    counts = {(s.labels["scope"], s.labels["state"]): s.value for s in family.samples}
    assert {state: counts["segment", state] for state in ("released", "engaged", "ramping")} == {
        "released": 1,
        "engaged": 1,
        "ramping": 1,
    }
    assert sum(counts.values()) == Switch.objects.count()


@pytest.mark.django_db
def test_a_ramping_switch_is_not_engaged():
    engage("search")
    Episode.objects.filter(switch_id="segment:search").update(allow_percent=25)

    assert series(db_now()) == {("segment", "search"): 0}
