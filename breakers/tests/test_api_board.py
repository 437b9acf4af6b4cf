"""The API of the board."""

import time
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection

from breakers.models import Minute, Transition
from breakers.services import overrides
from breakers.tests.registered import (
    OPERATOR,
    REASON,
    breaker,
    dependency,
    discovered,
    instance,
)
from controlplane.core.clock import db_now

pytestmark = pytest.mark.django_db

HISTORY = "/breakers/core/oracle/history"


def rows(api, **filters):
    response = api.get("/breakers/", filters)
    assert response.status_code == 200, response.content
    return {row["name"]: row for row in response.json()["results"]}


def test_row_has_the_worst_state_and_instances_by_state(viewer):
    now = db_now()
    one = dependency(now)
    breaker(one, instance(now, "core/a"))
    breaker(one, instance(now, "core/b"), "open")
    breaker(one, instance(now, "core/c", ago=60), "half_open")
    breaker(one, instance(now, "core/d", ago=400), "open")
    breaker(one, instance(now, "core/e", stopped=True), "open")

    row = rows(viewer)["core->oracle"]

    assert (row["caller"], row["callee"], row["state"]) == ("core", "oracle", "open")
    assert row["counts"] == {"closed": 1, "open": 1, "half_open": 0}
    assert (row["instances"], row["stale"], row["criticality"]) == (3, 1, "high")


def test_row_shows_what_is_forced_and_who_obeys(viewer):
    now = db_now()
    row = dependency(now)
    forced = overrides.set_override(
        caller="core", callee="oracle", mode="forced_closed", reason=REASON, expires_in="1h",
        actor=OPERATOR, now=now,
    )  # fmt: skip
    breaker(row, instance(now, "core/a", config_version=forced.version))

    override = rows(viewer)["core->oracle"]["override"]

    assert (override["mode"], override["set_by"]) == ("forced_closed", "user:olga")
    assert override["acknowledged"] == {"applied": 1, "instances": 1, "stragglers": []}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("open", {"core->open", "core->was-open"}),
        ("half_open", {"core->half"}),
        ("closed", {"core->closed", "core->closed-now"}),
        (
            "unknown",
            {"core->silent", "core->gone", "core->rebooted", "core->stopped", "core->polls"},
        ),
    ],
)
def test_filter_by_state_is_what_the_rows_say(viewer, state, expected):
    now = db_now()
    fresh, other = instance(now, "core/a"), instance(now, "core/b")
    stale, gone = instance(now, "core/c", ago=60), instance(now, "core/d", ago=400)
    said = {
        "open": [(fresh, "closed"), (other, "open")],
        "was-open": [(stale, "open")],
        "half": [(fresh, "half_open"), (other, "closed")],
        "closed": [(fresh, "closed")],
        "closed-now": [(fresh, "closed"), (stale, "open")],
        "silent": [],
        "gone": [(gone, "open")],
        "stopped": [(instance(now, "core/e", stopped=True), "open")],
        "polls": [(instance(now, "core/f", polls_again=True), "open")],
    }
    for callee, breakers in said.items():
        one = dependency(now, f"core->{callee}")
        for inside, how in breakers:
            breaker(one, inside, how)
    breaker(dependency(now, "core->rebooted"), fresh, "open", boot=uuid4())

    found = rows(viewer, state=state)

    assert found.keys() == expected
    assert {row["state"] for row in found.values()} == {state}


def test_other_filters_narrow_as_well(viewer):
    now = db_now()
    for name in ("core->oracle", "core->vision", "oracle->neo4j"):
        dependency(now, name)

    assert rows(viewer, caller="core", q="vis").keys() == {"core->vision"}
    assert rows(viewer, callee="neo4j").keys() == {"oracle->neo4j"}


@pytest.mark.parametrize("filters", [{"state": "ajar"}, {"criticality": "x"}, {"limit": "0"}])
def test_filter_that_makes_no_sense_is_refused(viewer, filters):
    assert viewer.get("/breakers/", filters).status_code == 400


def test_removed_dependency_is_on_no_board(viewer):
    now = db_now()
    row = discovered(now)
    row.removed_at = now
    row.save()

    assert rows(viewer) == {}


def transitions(one, count, now):
    Transition.objects.bulk_create(
        Transition(
            dependency=one,
            boot=uuid4(),
            n=number,
            instance="core/a",
            from_state="closed",
            to_state="open",
            at=now - timedelta(minutes=count - number),
            cause="failure_rate 0.60 >= 0.50",
            received_at=now,
        )
        for number in range(count)
    )


def test_history_has_transitions_newest_first_in_pages(viewer):
    now = db_now()
    transitions(dependency(now), 5, now)
    transitions(dependency(now, "core->vision"), 1, now)

    first = viewer.get(HISTORY, {"limit": 3}).json()
    rest = viewer.client.get(first["next"]).json()

    found = first["results"] + rest["results"]
    assert [row["n"] for row in found] == [4, 3, 2, 1, 0]
    assert (found[0]["from"], found[0]["to"]) == ("closed", "open")
    assert found[0]["cause"] == "failure_rate 0.60 >= 0.50"
    assert rest["next"] is None


def test_history_has_the_last_minutes_oldest_first(viewer):
    now = db_now()
    one = dependency(now)
    at = now.replace(second=0, microsecond=0)
    for ago, worst in ((5, 3), (2, 1), (90, 3)):
        Minute.objects.create(
            dependency=one, minute=at - timedelta(minutes=ago), worst=worst, failure=ago
        )

    minutes = viewer.get(HISTORY).json()["minutes"]
    none = viewer.get(HISTORY, {"minutes": "0"}).json()["minutes"]

    assert [(row["worst"], row["counters"]["failure"]) for row in minutes] == [
        ("open", 5),
        ("closed", 2),
    ]
    assert none == []


def test_history_of_what_nobody_knows_is_not_found(viewer):
    assert viewer.get(HISTORY).status_code == 404


MANY = 10_000


def test_board_of_ten_thousand_dependencies_answers_quickly(viewer):
    now = db_now()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO breakers_dependency (caller, callee, protocol, criticality, mode, owner,"
            " runbook_url, notes, managed_by, document, on_outage, version, registered_at,"
            " changed_at) SELECT 'c' || n %% 500, 's' || n, '', 'high', 'sync', '', '', '', '',"
            " '{}', '{}', 0, %(now)s, %(now)s FROM generate_series(1, %(many)s) n",
            {"now": now, "many": MANY},
        )
        cursor.execute(
            "INSERT INTO core_instance (id, service, boot, reported_at, heard_at, reported, checks)"
            " SELECT 'c' || n || '/a', 'c' || n, gen_random_uuid(), %s, %s, '{}', '{}'"
            " FROM generate_series(0, 499) n",
            [now, now],
        )
        cursor.execute(
            "INSERT INTO breakers_breakerstate (dependency_id, instance, boot, state, mode, calls,"
            " changed_at) SELECT d.id, i.id, i.boot, CASE WHEN d.id %% 50 = 0 THEN 'open' ELSE"
            " 'closed' END, 'normal', 10, %s FROM breakers_dependency d JOIN core_instance i"
            " ON i.service = d.caller",
            [now],
        )
        cursor.execute("ANALYZE breakers_dependency, breakers_breakerstate, core_instance")
    viewer.get("/breakers/")

    took = {}
    for name, filters in {
        "all": {},
        "open": {"state": "open"},
        "closed": {"state": "closed"},
        "unknown": {"state": "unknown"},
        "text": {"q": "s999"},
        "large": {"limit": "200"},
    }.items():
        tries = []
        for _ in range(3):
            began = time.perf_counter()
            assert viewer.get("/breakers/", filters).status_code == 200
            tries.append(time.perf_counter() - began)
        took[name] = min(tries)

    assert {name: seconds for name, seconds in took.items() if seconds >= 0.2} == {}
