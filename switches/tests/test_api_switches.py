"""The API of switches: list, detail, description and history."""

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.core.actors import system_actor
from controlplane.core.http.tests.callers import as_role, person, signed_in
from controlplane.tests.rows import multiply
from switches import services
from switches.models import Episode, Switch

pytestmark = pytest.mark.django_db
RELEASE = {"justification": "duplicate charges refunded, queue empty"}


def at_once(scope, key):
    """Release at once by the server's shell, which needs no approval."""
    services.release(
        scope=scope,
        key=key,
        mode="immediate",
        actor=system_actor("shell:ada"),
        now=timezone.now(),
        **RELEASE,
    )


@pytest.fixture(scope="class")
def board(class_db):
    """Create switches in every state."""
    operator = as_role("operator")
    operator.engage("global:all")
    operator.engage("segment:finance", expires_in="1h")
    operator.engage("feature:beta")
    operator.engage("segment:risk")
    at_once("segment", "risk")
    operator.patch("/switches/experiment/color/", {"owner": "Growth", "description": "결제 버튼"})
    Episode.objects.filter(switch="segment:finance").update(overdue_at=timezone.now())
    Episode.objects.filter(switch="feature:beta").update(allow_percent="12.5")
    return operator


def ids(response):
    assert response.status_code == 200, response.content
    return [row["id"] for row in response.json()["results"]]


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"scope": "galaxy"}, "scope"),
        ({"state": "broken"}, "state"),
        ({"overdue": "perhaps"}, "overdue"),
        ({"q": "nul\x00"}, "q"),
        ({"q": "x" * 201}, "q"),
    ],
)
def test_wrong_filter_is_named(operator, filters, field):
    response = operator.get("/switches/", filters)

    assert response.status_code == 400
    assert field in response.json()["errors"]


def test_unknown_key_is_a_released_switch_and_stays_unregistered(operator):
    response = operator.get("/switches/segment/never-heard-of/")

    switch = response.json()
    assert response.status_code == 200
    assert (switch["id"], switch["state"]) == ("segment:never-heard-of", "released")
    assert (switch["allow_percent"], switch["version"]) == (100, 0)
    assert not Switch.objects.exists()


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/switches/galaxy/x/", "scope"),
        ("/switches/global/x/", "key"),
        ("/switches/segment/a%20b/", "key"),
        ("/switches/segment/a%20b/history", "key"),
        ("/switches/galaxy/x/history", "scope"),
    ],
)
def test_impossible_switch_is_400_and_named(operator, path, field):
    response = operator.get(path)

    assert response.status_code == 400
    assert field in response.json()["errors"]


def test_history_is_every_episode_newest_first(operator):
    for reason in ("card payments charged twice", "ledger rows are missing"):
        operator.engage("segment:finance", reason=reason)
        at_once("segment", "finance")
    operator.engage("segment:finance", reason="exports time out again", evidence={"p99": 12.5})
    operator.engage("segment:other")

    now, before, first = operator.get("/switches/segment/finance/history").json()["results"]

    assert (now["state"], now["reason"]) == ("engaged", "exports time out again")
    assert (now["evidence"], now["ended_at"], now["ended_how"]) == ({"p99": 12.5}, None, None)
    assert now["engaged_by"] == {"type": "user", "name": "a-operator"}
    assert (before["state"], before["reason"]) == ("released", "ledger rows are missing")
    assert (before["ended_by"], before["ended_how"]) == ("shell:ada", "released")
    assert before["justification"] == RELEASE["justification"]
    assert first["id"] < before["id"] < now["id"]


def test_history_of_a_switch_nobody_named_is_empty(operator):
    assert operator.get("/switches/segment/never/history").json()["results"] == []


def test_history_comes_in_pages(operator):
    for _ in range(3):
        operator.engage("segment:finance")
        operator.post("/switches/segment/finance/undo")

    first = operator.get("/switches/segment/finance/history", {"limit": 2}).json()

    second = operator.client.get(first["next"]).json()
    assert (len(first["results"]), len(second["results"])) == (2, 1)
    assert second["next"] is None


def test_times_are_utc_whatever_the_zone_of_who_asks():
    user = person("operator")
    user.time_zone = "Asia/Seoul"
    user.save()
    started = timezone.now()

    engaged_at = signed_in(user).engage("segment:finance").json()["engaged_at"]

    assert engaged_at.startswith(f"{started:%Y-%m-%dT%H:}")
    assert engaged_at.endswith("Z")


@pytest.fixture(scope="class")
def ten_thousand(class_db):
    now = timezone.now()
    switch = Switch.objects.create(
        id="feature:f00000", scope="feature", key="f00000", owner="team-0", registered_at=now
    )
    multiply(
        switch,
        9_999,
        id="'feature:f' || lpad(i::text, 5, '0')",
        key="'f' || lpad(i::text, 5, '0')",
        owner="'team-' || i % 50",
    )
    episode = Episode.objects.create(
        switch=switch,
        reason="card payments charged twice",
        engaged_by_type="user",
        engaged_by_name="kim",
        engaged_at=now,
        engaged_version=1,
        expires_at=now + timedelta(days=1),
        on_expiry="hold",
        salt="s",
    )
    multiply(episode, 999, switch="'feature:f' || lpad((10 * i)::text, 5, '0')")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE switches_switch, switches_episode")
    return as_role("operator")


class TestBoard:
    @pytest.mark.parametrize(
        ("filters", "found"),
        [
            ({}, "experiment:color feature:beta global:all segment:finance segment:risk"),
            ({"scope": "segment"}, "segment:finance segment:risk"),
            ({"scope": "global"}, "global:all"),
            ({"state": "engaged"}, "global:all segment:finance"),
            ({"state": "ramping"}, "feature:beta"),
            ({"state": "released"}, "experiment:color segment:risk"),
            ({"overdue": "true"}, "segment:finance"),
            ({"overdue": "false"}, "experiment:color feature:beta global:all segment:risk"),
            ({"overdue": "1"}, "segment:finance"),
            ({"q": "fin"}, "segment:finance"),
            ({"q": "FIN"}, "segment:finance"),
            ({"q": "growth"}, "experiment:color"),
            ({"q": "결제"}, "experiment:color"),
            ({"q": "segment:"}, "segment:finance segment:risk"),
            ({"q": "%"}, ""),
            ({"q": "_"}, ""),
            ({"q": "\\"}, ""),
            ({"scope": "segment", "state": "engaged", "q": "fin"}, "segment:finance"),
            ({"scope": "", "state": "", "overdue": "", "q": ""}, None),
        ],
    )
    def test_filter_finds(self, board, filters, found):
        everything = "experiment:color feature:beta global:all segment:finance segment:risk"
        expected = (everything if found is None else found).split()

        assert ids(board.get("/switches/", filters)) == expected

    def test_ramping_switch_shows_its_share(self, board):
        (ramping,) = board.get("/switches/", {"state": "ramping"}).json()["results"]

        assert (ramping["state"], ramping["allow_percent"]) == ("ramping", 12.5)

    def test_overdue_switch_says_so(self, board):
        assert board.get("/switches/segment/finance/").json()["overdue"] is True


class TestTenThousand:
    def test_page_of_ten_thousand_takes_few_queries_and_little_time(self, ten_thousand):
        for filters in (
            {},
            {"state": "engaged"},
            {"state": "released"},
            {"overdue": "false"},
            {"scope": "feature", "q": "team-7"},
            {"q": "nothing like it"},
        ):
            times = []
            while len(times) < 5 or (
                min(times) >= 0.05 and len(times) < 30
            ):  # A busy machine is slow.
                with CaptureQueriesContext(connection) as queries:
                    started = time.perf_counter()
                    response = ten_thousand.get("/switches/", filters)
                    times.append(time.perf_counter() - started)

            assert response.status_code == 200, filters
            assert len(queries) <= 4, filters  # Session, person, page, open episodes.
            assert min(times) < 0.05, filters

    def test_larger_page_takes_no_more_queries(self, ten_thousand):
        with CaptureQueriesContext(connection) as few:
            ten_thousand.get("/switches/", {"limit": 1})
        with CaptureQueriesContext(connection) as many:
            assert len(ids(ten_thousand.get("/switches/", {"limit": 200}))) == 200

        assert len(many) == len(few)
