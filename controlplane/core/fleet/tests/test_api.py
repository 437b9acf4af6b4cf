"""The API of the fleet: members with their state, in pages."""

import pytest

from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.fleet.tests.rows import EPOCH, SECOND, create_process, publish
from controlplane.core.http.tests.callers import Api, as_role

pytestmark = pytest.mark.django_db


@pytest.fixture
def now():
    now = db_now()
    publish(now)
    return now


def test_list_has_members_and_the_published_version(now):
    create_process("dp-1", now)
    create_process("eu-1", now, upstream="dp-1", silent_for=90)

    body = as_role("viewer").get("/fleet/").json()

    assert body["published"] == {
        "epoch": str(EPOCH),
        "version": 120,
        "published_at": timestamp(now - 60 * SECOND),
    }
    assert [(one["name"], one["state"]) for one in body["results"]] == [
        ("eu-1", "silent"),
        ("dp-1", "current"),
    ]
    assert body["results"][0] == {
        "name": "eu-1",
        "kind": "relay",
        "state": "silent",
        "upstreams": ["dp-1"],
        "releases": ["0.1.0"],
        "epoch": str(EPOCH),
        "version": 120,
        "age_seconds": 0.4,
        "held": 30,
        "instances": 12,
        "processes": 1,
        "heard_at": timestamp(now - 90 * SECOND),
    }


def test_list_is_filtered_and_paginated(now):
    for n in range(3):
        create_process(f"dp-{n}", now)
    create_process("eu-1", now, upstream="dp-1", silent_for=90)
    api = as_role("viewer")

    first = api.get("/fleet/", {"limit": 2, "state": "current"}).json()
    rest = api.client.get(first["next"]).json()

    assert [one["name"] for one in first["results"]] == ["dp-0", "dp-1"]
    assert [one["name"] for one in rest["results"]] == ["dp-2"]
    assert rest["next"] is None
    assert api.get("/fleet/", {"state": "asleep"}).status_code == 400


def test_anonymous_callers_are_refused():
    assert Api().get("/fleet/").status_code == 401
