"""Snapshot and check for signed-in browsers: the same document and the same decisions."""

import hashlib
from datetime import timedelta
from itertools import islice
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from controlplane.core.http.tests.callers import as_role, at_once, person, signed_in
from switches.models import EmergencyOrder, Episode, Publication

pytestmark = pytest.mark.django_db
RELEASE = {"justification": "duplicate charges refunded, queue empty"}


def test_snapshot_is_every_switch_that_is_not_released(operator):
    operator.engage("segment:finance")
    operator.engage("feature:beta")
    operator.engage("segment:a")
    operator.post("/switches/segment/a/undo")

    response = operator.get("/snapshot")

    document = response.json()
    row = Publication.objects.get()
    assert (document["schema"], document["poll_seconds"]) == (1, 5)
    assert (document["epoch"], document["version"]) == (str(row.epoch), row.version)
    assert [switch["id"] for switch in document["switches"]] == ["feature:beta", "segment:finance"]
    assert set(document["switches"][0]) == {
        *("id", "scope", "key", "state", "allow_percent", "salt", "reason", "engaged_at"),
        *("expires_at", "on_expiry"),
    }


def test_snapshot_lists_stored_emergency_orders(operator):
    now = timezone.now()

    def store(number, **more):
        fields = {"action": "engage", "switch": "feature:chat", "reason": "OpenAI 5xx", "at": now}
        by = {"by_type": "user", "by_name": "kim", "by_id": 7, "plane": "dp-1"}
        row = EmergencyOrder.objects.create(id=UUID(int=number), **{**fields, **by, **more})
        return str(row.pk)

    is_open, withdrawn = store(1), store(2)
    store(3, action="withdraw", order_id=withdrawn)
    done = {"state": "reconciled", "closed_version": 1}
    closed = store(4, closed_at=now, **done)
    store(5, closed_at=now - timedelta(days=2), **done)

    assert operator.get("/snapshot").json()["emergency"] == {
        "open": [is_open],
        "closed": [withdrawn, closed],
    }


def test_snapshot_carries_its_headers(operator):
    operator.engage("segment:finance")

    response = operator.get("/snapshot")

    row = Publication.objects.get()
    assert response["ETag"] == f'"{row.epoch}.{row.version}"'
    assert response["Switchgear-Version"] == str(row.version)
    assert response["Switchgear-Age"] == "0.0"
    assert response["Cache-Control"] == "no-cache"


@pytest.mark.django_db(transaction=True)
def test_snapshot_is_of_one_moment_even_if_a_switch_changes_while_it_is_read():
    reader, other = as_role("viewer"), as_role("operator")
    changes = iter([lambda: other.engage("feature:meanwhile")])

    def meanwhile(execute, sql, params, many, context):
        if "switches_episode" in sql:
            at_once(*islice(changes, 1))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(meanwhile):
        document = reader.get("/snapshot").json()

    assert document["version"] == Publication.objects.get().version
    assert [switch["id"] for switch in document["switches"]] == ["feature:meanwhile"]


@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*", ' {} , "x"'])
def test_snapshot_that_is_known_is_304(operator, form):
    etag = operator.get("/snapshot")["ETag"]

    response = operator.get("/snapshot", if_none_match=form.format(etag))

    assert (response.status_code, response.content) == (304, b"")
    assert response["ETag"] == etag


@pytest.mark.parametrize("given", ["", '"other"', "other", "\x00", '"' * 1000])
def test_snapshot_that_is_not_known_is_200(operator, given):
    assert operator.get("/snapshot", if_none_match=given).status_code == 200


def test_snapshot_changes_with_every_published_change_and_with_nothing_else(operator):
    tags = [operator.get("/snapshot")["ETag"]]
    operator.engage("segment:finance")
    tags.append(operator.get("/snapshot")["ETag"])
    operator.post("/switches/segment/finance/acknowledge", {})
    operator.patch("/switches/segment/finance/", {"owner": "payments"})
    tags.append(operator.get("/snapshot")["ETag"])
    operator.post("/switches/segment/finance/undo")
    tags.append(operator.get("/snapshot")["ETag"])

    assert tags[1] == tags[2]
    assert len(set(tags)) == 3


def test_check_names_the_first_switch_that_blocks(operator):
    operator.engage("feature:beta", reason="beta answers are truncated")
    operator.engage("segment:finance")
    version = Publication.objects.get().version

    request_body = {"segments": ["risk", "finance"], "features": ["beta"], "experiments": []}
    response = operator.post("/check", request_body).json()

    assert response == {
        "allowed": False,
        "switch": "segment:finance",
        "reason": "card payments charged twice",
        "version": version,
    }
    only_beta = operator.post("/check", {"features": ["beta"]}).json()
    assert only_beta["switch"] == "feature:beta"


def test_check_of_nothing_is_allowed_until_everything_is_stopped(operator):
    allowed = operator.post("/check", {}).json()
    operator.engage("global:all")

    assert (allowed["allowed"], allowed["switch"], allowed["reason"]) == (True, None, None)
    assert operator.post("/check", {}).json()["switch"] == "global:all"


def test_check_of_a_ramping_switch_follows_the_bucket(operator):
    operator.engage("feature:beta")
    Episode.objects.update(allow_percent="50", salt="salt")

    for number in range(20):
        key = f"u{number}"
        bucket = int.from_bytes(hashlib.sha256(f"salt:{key}".encode()).digest()[:8], "big") % 10000
        response = operator.post("/check", {"features": ["beta"], "targeting_key": key}).json()
        assert response["allowed"] == (bucket < 5000)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"segments": "finance"}, "segments"),
        ({"segments": ["fi nance"]}, "segments"),
        ({"segments": ["ok", ""]}, "segments"),
        ({"segments": ["ok\n"]}, "segments"),
        ({"features": [5]}, "features"),
        ({"experiments": {"a": 1}}, "experiments"),
        ({"targeting_key": 5}, "targeting_key"),
        ({"targeting_key": "nul\x00"}, "targeting_key"),
        ({"segment": ["finance"]}, "segment"),
    ],
)
def test_wrong_question_is_named(operator, body, field):
    response = operator.post("/check", body)

    assert response.status_code == 400
    assert field in response.json()["errors"]


def test_check_by_session_needs_the_csrf_token():
    browser = signed_in(person("viewer"), csrf=True)

    assert browser.post("/check", {}).status_code == 403
    assert browser.get("/snapshot").status_code == 200
