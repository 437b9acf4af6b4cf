"""Engaged switches as a threshold metric."""

import pytest

from controlplane.core.actors import Actor, system_actor
from controlplane.core.clock import db_now
from controlplane.core.roles import ALL_SCOPES, Role
from controlplane.core.threshold_metrics import MetricQuery
from switches import services, threshold_metrics
from switches.tests.browsers import engaged, overdue, released
from switches.trips import services as trips

pytestmark = pytest.mark.django_db

ANY = MetricQuery("now", ">", 0)
MONITOR = Actor(type="token", name="monitor", role=Role.OPERATOR, scopes=ALL_SCOPES)


def read_engaged():
    return {one.subject: one for one in threshold_metrics.read_engaged(ANY, db_now())}


def stop(actor, key):
    services.engage(
        scope="segment",
        key=key,
        actor=actor,
        reason="5xx on completions since 02:10, INC-4411",
        expires_in="24h",
        now=db_now(),
    )


def test_every_engaged_switch_is_one_with_its_page_and_thread():
    user = engaged("segment:finance")
    engaged("feature:search", by=user)

    found = read_engaged()

    assert set(found) == {"segment:finance", "feature:search"}
    one = found["segment:finance"]
    assert (one.value, one.beyond, one.samples) == (1, True, 1)
    assert one.path == "/switches/segment/finance/"
    assert one.thread.startswith("episode:")
    assert one.summary == "The switch segment:finance was engaged by kim"
    assert one.evidence["stands"] == "engaged"


def test_one_that_is_released_is_none():
    engaged("segment:finance")
    released("segment:finance")

    assert read_engaged() == {}


def test_whoever_engaged_it_knows_of_it_unless_that_was_a_machine():
    engaged("segment:by-person")
    stop(MONITOR, "by-token")
    stop(system_actor("srm"), "by-house")
    stop(system_actor("shell:root"), "by-shell")

    assert {name: one.acknowledged_by for name, one in read_engaged().items()} == {
        "segment:by-person": "user:kim",
        "segment:by-token": "token:monitor",
        "segment:by-house": "",
        "segment:by-shell": "shell:root",
    }


def test_what_a_monitor_tripped_nobody_knows_of_although_its_token_is_somebodys():
    trips.request_trip(
        switch="experiment:ranking-v2",
        source="srm",
        fingerprint="srm-1",
        reason="Sample ratio mismatch, p below 0.0001 over 20,000 users",
        evidence={"p": 0.00001},
        actor=MONITOR,
        now=db_now(),
    )

    assert read_engaged()["experiment:ranking-v2"].acknowledged_by == ""


def test_whoever_acknowledges_the_switch_knows_of_it():
    stop(system_actor("srm"), "finance")
    services.acknowledge(scope="segment", key="finance", actor=system_actor("kim"), now=db_now())

    assert read_engaged()["segment:finance"].acknowledged_by == "system:kim"


def test_those_that_are_overdue_wait_by_themselves():
    engaged("segment:fresh")
    overdue("segment:late")

    assert threshold_metrics.list_overdue(db_now()) == {"segment:late"}
