"""SLOs over HTTP."""

from datetime import timedelta

import pytest

from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, with_token
from slo.arithmetic.minutes import end_of, last_ended
from slo.models import Sli, Slo, SloStatus

from .factories import counted, slo

pytestmark = pytest.mark.django_db

ONE = "/slos/core-availability/"
BODY = {"service": "core", "kind": "availability", "target": 0.999}
FAST = {"long": "1h", "short": "5m", "burn_rate": 14.4, "severity": "page"}


@pytest.fixture
def viewer():
    return as_role("viewer")


def count_steadily(of, minutes=120, bad=0):
    """Count a hundred events a minute until now, some bad; return the last minute."""
    last = last_ended(db_now())
    rows = [(last - minutes + n, n * (100 - bad), n * 100) for n in range(minutes + 1)]
    counted(of, rows)
    return last


def test_new_slo_is_made_and_shown_as_it_was_said(admin):
    response = admin.send("put", ONE, {**BODY, "rules": [FAST], "reason": "agreed in May"})

    assert response.status_code == 201
    body = response.json()
    assert body["name"] == "core-availability"
    assert (body["target"], body["rules"], body["version"]) == (0.999, [FAST], 1)
    assert (body["state"], body["judged_at"], body["counted_to"]) == ("unknown", None, None)
    assert admin.get(ONE).json() == body
    assert Sli.objects.get().slo.name == "core-availability"


def test_post_makes_one_and_refuses_one_that_is_there(admin):
    assert admin.post("/slos/", {**BODY, "name": "core-availability"}).status_code == 201

    again = admin.post("/slos/", {**BODY, "name": "core-availability"})

    assert again.status_code == 409
    assert "Use PUT to change it" in again.json()["detail"]


def test_what_was_shown_can_be_put_back(admin):
    first = admin.send("put", ONE, BODY).json()

    again = admin.send("put", ONE, first)

    assert again.status_code == 200
    assert again.json() == first


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"target": 2, "rules": [{**FAST, "burn_rate": 1000}]}, {"target", "rules.0.burn_rate"}),
        ({"owner": 1, "description": []}, {"owner", "description"}),
        ({"window-days": 7}, {"window-days"}),
        ({"source": {"type": "prometheus"}}, {"source.url", "source.good", "source.total"}),
    ],
)
def test_every_wrong_field_is_named(admin, fields, wrong):
    response = admin.send("put", ONE, {**BODY, **fields})

    assert response.status_code == 400
    assert response.json()["errors"].keys() == wrong


def test_target_is_required(admin):
    assert admin.send("put", ONE, {}).json()["errors"].keys() == {"target"}


@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_only_admins_change_objectives(role):
    slo()
    caller = as_role(role)

    assert caller.send("put", ONE, BODY).status_code == 403
    assert caller.post("/slos/", {**BODY, "name": "x"}).status_code == 403
    assert caller.send("delete", ONE, {}).status_code == 403
    assert caller.get(ONE).status_code == 200


def test_token_needs_its_scope():
    slo()

    reader = with_token("slo:read")

    assert reader.get(ONE).status_code == 200
    assert reader.send("put", ONE, BODY).status_code == 403
    assert reader.send("delete", ONE, {}).status_code == 403


def test_token_without_the_scope_sees_nothing():
    slo()

    assert with_token("switches:read").get(ONE).status_code == 403


def test_dry_run_changes_nothing(admin):
    response = admin.send("put", ONE, {**BODY, "dry_run": True})

    assert (response.status_code, response.json()["dry_run"]) == (200, True)
    assert not Slo.objects.exists()


def test_removed_slo_is_not_found(admin):
    slo()

    assert admin.send("delete", ONE, {"reason": "replaced"}).status_code == 200

    assert admin.get(ONE).status_code == 404
    assert admin.get("/slos/").json()["results"] == []


def test_list_is_in_pages_by_name_and_narrowed(viewer):
    for name, service in (("b", "core"), ("a", "core"), ("c", "oracle")):
        slo(name, service=service)
    SloStatus.objects.create(
        slo=Slo.objects.get(name="b"), minute=1, state="firing", since=db_now()
    )

    def names(query):
        return [one["name"] for one in viewer.get(f"/slos/{query}").json()["results"]]

    assert names("") == ["a", "b", "c"]
    assert names("?limit=2") == ["a", "b"]
    assert names("?service=oracle") == ["c"]
    assert names("?state=firing") == ["b"]
    assert names("?state=unknown") == ["a", "c"]
    assert names("?q=ORACLE") == ["c"]
    assert viewer.get("/slos/?state=bad").status_code == 400


def test_list_takes_as_many_queries_for_many(viewer, django_assert_max_num_queries):
    for number in range(20):
        slo(f"s{number}")

    with django_assert_max_num_queries(12):
        assert len(viewer.get("/slos/").json()["results"]) == 20


def test_status_tells_burn_rates_budget_rules_and_coverage(viewer):
    count_steadily(slo(rules=[FAST]), bad=2)

    body = viewer.get(f"{ONE}status").json()

    assert body["state"] == "firing"
    assert body["burn_rates"] == {"5m": 20.0, "30m": 20.0, "1h": 20.0, "6h": 20.0}
    assert body["rules"] == [{**FAST, "state": "firing"}]
    assert body["coverage"]["1h"] == 1.0
    assert body["budget"].keys() == {"remaining_ratio", "exhausts_at"}


def test_status_of_a_moment_is_as_it_was_then(viewer):
    one = slo()
    last = count_steadily(one, minutes=60)
    before = timestamp(end_of(last - 61)).replace("+", "%2B")

    assert viewer.get(f"{ONE}status?at={before}").json()["state"] == "unknown"
    assert viewer.get(f"{ONE}status?at=2100-01-01").status_code == 400
    assert viewer.get(f"{ONE}status?at=yesterday").status_code == 400
    for beyond in (
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00%2B12:00",
        "1969-12-31T23:59:59Z",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-12:00",
    ):
        assert viewer.get(f"{ONE}status?at={beyond}").status_code == 400, beyond
    assert viewer.get(f"{ONE}status?at=1970-01-01T00:00:00Z").status_code == 200
    assert viewer.get("/slos/nobody/status").status_code == 404


def test_series_is_a_status_at_each_step(viewer):
    last = count_steadily(slo(rules=[FAST]), bad=2)
    start, end = timestamp(end_of(last - 20)), timestamp(end_of(last))

    body = viewer.get(f"{ONE}series?from={start}&to={end}&step=10m").json()

    assert (body["from"], body["to"], body["step_seconds"]) == (start, end, 600)
    assert [one["at"] for one in body["points"]] == [
        timestamp(end_of(last - back)) for back in (20, 10, 0)
    ]
    assert {one["burn_rates"]["1h"] for one in body["points"]} == {20.0}


def test_series_of_the_last_day_is_the_usual(viewer):
    count_steadily(slo())

    body = viewer.get(f"{ONE}series").json()

    assert body["step_seconds"] == 300
    assert len(body["points"]) == 289


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=2026-01-02&to=2026-01-01", "to"),
        ("from=2100-01-01", "to"),
        ("from=1990-01-01", "from"),
        ("step=90", "step"),
        ("step=0", "step"),
        ("step=soon", "step"),
        ("step=60&from={a_month_ago}", "step"),
    ],
)
def test_span_that_can_t_be_told_is_refused(viewer, query, field):
    slo()
    a_month_ago = timestamp(db_now() - timedelta(days=30))

    response = viewer.get(f"{ONE}series?" + query.format(a_month_ago=a_month_ago))

    assert (response.status_code, *response.json()["errors"]) == (400, field)


def test_backtest_tells_the_alerts_that_there_would_have_been(viewer):
    one = slo(rules=[])
    last = last_ended(db_now())
    counted(one, [(last - 180 + n, n * 100 - max(0, min(n - 60, 30)) * 10, n * 100)
                  for n in range(181)])  # fmt: skip
    body = {"start": timestamp(end_of(last - 180)), "rules": [FAST], "step": 60}

    result = viewer.post(f"{ONE}backtest", body).json()

    (alert,) = result["alerts"]
    assert (alert["severity"], alert["burn_rate"], alert["long"]) == ("page", 14.4, "1h")
    assert timestamp(end_of(last - 120)) < alert["opened_at"] < alert["resolved_at"]
    assert alert["lasted_seconds"] > 1000
    assert alert["worst"]["5m"] == 100.0
    assert result["states"]["firing"] > 10
    assert "results" not in result
    assert Slo.objects.get().rules == []


def test_backtest_tells_each_tick_if_asked(viewer):
    last = count_steadily(slo(rules=[FAST]))

    result = viewer.post(
        f"{ONE}backtest", {"start": timestamp(end_of(last - 10)), "step": "5m", "ticks": True}
    ).json()

    assert [one["rules"][0]["state"] for one in result["results"]] == ["ok"] * 3


def test_backtest_refuses_rules_that_could_never_fire(viewer):
    slo()
    rules = [{**FAST, "burn_rate": 1000}]

    response = viewer.post(f"{ONE}backtest", {"start": timestamp(db_now()), "rules": rules})

    assert response.json()["errors"].keys() == {"rules.0.burn_rate"}


def test_listed_row_equals_the_slo_by_itself(admin):
    plain = slo("core-availability")
    SloStatus.objects.create(
        slo=plain,
        minute=last_ended(db_now()),
        state="ok",
        since=db_now().replace(microsecond=0),
        burn_rates={},
        coverage={},
        rules=[],
        remaining_ratio=0.25,
    )
    admin.send("put", "/slos/never-judged/", {**BODY, "kind": "latency", "threshold_ms": 250.5})

    listed = admin.get("/slos/").json()["results"]

    assert [row["name"] for row in listed] == ["core-availability", "never-judged"]
    assert listed == [admin.get(f"/slos/{row['name']}/").json() for row in listed]
