"""Concurrent changes: rules are evaluated under the lock that every change takes."""

import pytest

from controlplane.core.http.tests.callers import at_once, person, signed_in
from switches.models import Episode
from switches.rules.tests.factories import create_rule

pytestmark = pytest.mark.django_db(transaction=True)
SAFE = {"justification": "5xx below 0.1 % for twenty minutes"}


def people(count):
    return [signed_in(person("operator", f"p{number}")) for number in range(count)]


def test_of_an_exclusive_pair_engaged_at_once_one_wins():
    create_rule("exclusive", "feature:a", "feature:b")
    kim, lee = people(2)

    for _ in range(5):
        responses = at_once(lambda: kim.engage("feature:a"), lambda: lee.engage("feature:b"))

        assert sorted(response.status_code for response in responses) == [200, 409]
        lost = next(response for response in responses if response.status_code == 409)
        assert lost.json()["rule"] == "exclusive"
        open_now = Episode.objects.filter(ended_at__isnull=True)
        assert open_now.count() == 1
        path = f"/switches/{open_now.get().switch_id.replace(':', '/')}/undo"
        assert sorted(somebody.post(path).status_code for somebody in (kim, lee)) == [200, 409]


def test_of_six_at_once_no_more_than_two_are_engaged():
    create_rule("at_most", "segment:*", n=2)

    responses = at_once(
        *(
            lambda number=number, somebody=somebody: somebody.engage(f"segment:s{number}")
            for number, somebody in enumerate(people(6))
        )
    )

    assert sorted(response.status_code for response in responses) == [200, 200, 409, 409, 409, 409]


def test_of_the_last_two_released_at_once_one_stays():
    create_rule("at_least_one", "feature:*")
    kim, lee = (signed_in(person("approver", name)) for name in ("kim", "lee"))
    at_full = {**SAFE, "mode": "immediate"}
    kim.engage("feature:a")
    kim.engage("feature:b")

    responses = at_once(
        lambda: kim.post("/switches/feature/a/release", at_full),
        lambda: lee.post("/switches/feature/b/release", at_full),
    )

    assert sorted(response.status_code for response in responses) == [200, 409]
    assert Episode.objects.filter(ended_at__isnull=True).count() == 1
