"""Concurrent actions on one switch: one wins, the other learns what happened."""

import pytest

from controlplane.core.http.tests.callers import as_role, at_once, person, signed_in
from switches.models import Episode, Publication, Ramp

pytestmark = pytest.mark.django_db(transaction=True)
RELEASE = {"justification": "duplicate charges refunded, queue empty"}


def test_of_two_operators_who_engage_one_wins_and_the_other_gets_the_episode():
    kim, lee = (signed_in(person("operator", name)) for name in ("kim", "lee"))
    version = Publication.objects.get().version

    responses = at_once(
        lambda: kim.engage("segment:finance", reason="card payments charged twice"),
        lambda: lee.engage("segment:finance", reason="ledger rows are missing"),
    )

    won, lost = sorted(responses, key=lambda response: response.status_code)
    assert (won.status_code, lost.status_code) == (200, 409)
    assert lost.json()["episode"]["reason"] == won.json()["reason"]
    assert lost.json()["episode"]["engaged_by"] == f"user:{won.json()['engaged_by']}"
    assert Episode.objects.count() == 1
    assert Publication.objects.get().version == version + 1


def test_of_many_who_release_one_wins():
    people = [signed_in(person("operator", f"p{number}")) for number in range(4)]
    people[0].engage("segment:finance")

    responses = at_once(
        *(
            lambda somebody=somebody: somebody.post("/switches/segment/finance/release", RELEASE)
            for somebody in people
        )
    )

    assert sorted(response.status_code for response in responses) == [202, 409, 409, 409]
    assert Ramp.objects.count() == 1


def test_of_many_who_release_at_once_one_wins():
    people = [signed_in(person("approver", f"p{number}")) for number in range(4)]
    people[0].engage("feature:beta")
    body = {**RELEASE, "mode": "immediate"}

    responses = at_once(
        *(
            lambda somebody=somebody: somebody.post("/switches/feature/beta/release", body)
            for somebody in people
        )
    )

    assert sorted(response.status_code for response in responses) == [200, 409, 409, 409]


def test_changes_of_different_switches_are_numbered_without_a_gap():
    people = [signed_in(person("operator", f"p{number}")) for number in range(6)]
    version = Publication.objects.get().version

    responses = at_once(
        *(
            lambda number=number, somebody=somebody: somebody.engage(f"feature:f{number}")
            for number, somebody in enumerate(people)
        )
    )

    assert {response.status_code for response in responses} == {200}
    versions = sorted(response.json()["version"] for response in responses)
    assert versions == list(range(version + 1, version + 7))
    rows = people[0].get("/audit/", {"action": "switch.engaged"}).json()["results"]
    assert len(rows) == 6


def test_release_and_extend_at_once_leave_one_clear_state():
    operator, admin = as_role("operator"), as_role("admin")
    operator.engage("feature:beta")
    later = {"expires_in": "2d", "reason": "refund job is still running"}

    extended, released = at_once(
        lambda: operator.post("/switches/feature/beta/extend", later),
        lambda: admin.post("/switches/feature/beta/release", {**RELEASE, "mode": "immediate"}),
    )

    assert released.status_code == 200
    assert extended.status_code in {200, 409}
    assert operator.get("/switches/feature/beta/").json()["state"] == "released"
