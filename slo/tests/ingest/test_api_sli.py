"""Pushing counters over HTTP."""

from datetime import timedelta
from typing import Any

import pytest

from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.gates.models import EventCount
from controlplane.core.http.tests.callers import Api, as_role, person, with_token
from slo.arithmetic.minutes import minute_of
from slo.counters import reader
from slo.models import CounterMinute, DeltaBatch, Series, Sli

from .sample_helpers import objective

pytestmark = pytest.mark.django_db


@pytest.fixture
def api() -> Api:
    return with_token("slo:write")


def point(good: float, total: float, ago: float | None = None, **more: Any) -> dict[str, Any]:
    fields = {"slo": "core-availability", "source": "a", "good": good, "total": total, **more}
    if ago is not None:
        fields["at"] = timestamp(db_now() - timedelta(seconds=ago))
    return fields


def limited_to(*services: str) -> Api:
    """Create a token limited to these services."""
    _, text = tokens.create_token(
        name="core",
        owner=person("operator", "olga"),
        scopes=["report:write"],
        limit_to=services,
        actor=system_actor("test"),
        now=db_now(),
    )
    return Api(x_api_key=text)


def total(sli: Sli) -> tuple[float, float]:
    minute = minute_of(db_now()) + 2
    count = reader.load_counts({sli.pk: [minute]})[sli.pk, minute]
    return count.good, count.total


def test_points_are_counted_and_told(api: Api, sli: Sli) -> None:
    first, second = point(90, 100, 60), point(95, 110, 0)

    response = api.post("/sli/", {"points": [first, second]})
    again = api.post("/sli", {"points": [first, second]})

    assert (response.status_code, again.status_code) == (200, 200)
    assert response.json() == {"accepted": 2, "duplicates": 0, "refused": []}
    assert again.json() == {"accepted": 0, "duplicates": 2, "refused": []}
    assert total(sli) == (5, 10)


def test_point_without_a_time_is_of_now(api: Api, sli: Sli) -> None:
    api.post("/sli/", {"points": [point(90, 100)]})
    api.post("/sli/", {"points": [point(91, 101)]})

    assert total(sli) == (1, 1)
    assert abs(Series.objects.get().at - db_now()) < timedelta(minutes=1)


def test_one_malformed_point_refuses_all(api: Api, sli: Sli) -> None:
    response = api.post("/sli/", {"points": [point(1, 1), point(1, 1), point(1, 1), point(2, 1)]})

    assert response.status_code == 400
    assert list(response.json()["errors"]) == ["points[3].good"]
    assert not Series.objects.exists()


def test_points_of_another_time_or_of_no_slo_are_left_out_and_told(api: Api, sli: Sli) -> None:
    points = [
        point(1, 1, 86_400 + 60),
        point(5, 6, 86_400 - 60),
        point(1, 1, -120),
        point(1, 1, 0, slo="nobody-knows"),
        point(7, 8, -30),
    ]

    response = api.post("/sli/", {"points": points}).json()

    assert (response["accepted"], response["duplicates"]) == (2, 0)
    assert [one["index"] for one in response["refused"]] == [0, 2, 3]
    said = [one["error"] for one in response["refused"]]
    assert "24 hours" in said[0]
    assert "ahead" in said[1]
    assert "nobody-knows" in said[2]
    assert total(sli) == (2, 2)


def test_nothing_but_refused_points_are_an_error(api: Api, sli: Sli) -> None:
    response = api.post("/sli/", {"points": [point(1, 1, slo="b"), point(1, 1, 90_000)]})

    assert response.status_code == 400
    assert list(response.json()["errors"]) == ["points[0].slo", "points[1].at"]


def test_counters_that_are_read_from_prometheus_take_nothing(api: Api) -> None:
    objective("read", source={"type": "prometheus"})

    response = api.post("/sli/", {"points": [point(1, 1, slo="read")]})

    assert response.status_code == 400
    assert "Prometheus" in response.json()["errors"]["points[0].slo"][0]


def test_no_points_are_nothing(api: Api) -> None:
    assert api.post("/sli/", {"points": []}).json()["accepted"] == 0


@pytest.mark.parametrize(("scope", "status"), [("report:write", 200), ("slo:read", 403)])
def test_whoever_reports_may_push_and_whoever_reads_may_not(
    scope: str, status: int, sli: Sli
) -> None:
    assert with_token(scope).post("/sli/", {"points": [point(1, 1)]}).status_code == status


def test_operators_may_push_and_viewers_and_strangers_may_not(sli: Sli) -> None:
    body = {"points": [point(1, 1)]}
    assert as_role("operator").post("/sli/", body).status_code == 200
    viewer = as_role("viewer")
    assert viewer.post("/sli/", body).status_code == 403
    assert viewer.get("/sli/").status_code == 405
    assert Api().post("/sli/", body).status_code == 401


def test_key_that_comes_again_gets_the_first_answer(api: Api, sli: Sli) -> None:
    body = {"points": [point(1, 1, 60)]}
    first = api.post("/sli/", body, Idempotency_Key="k1")
    again = api.post("/sli/", body, Idempotency_Key="k1")

    assert again.json() == first.json() == {"accepted": 1, "duplicates": 0, "refused": []}
    assert again["Idempotent-Replayed"] == "true"


def test_dry_run_counts_nothing(api: Api, sli: Sli) -> None:
    response = api.post("/sli/", {"points": [point(1, 1)], "dry_run": True})

    assert response.json() == {"accepted": 1, "duplicates": 0, "refused": [], "dry_run": True}
    assert not Series.objects.exists()
    assert api.post("/sli/", {"points": [], "dryrun": True}).status_code == 400


def test_ten_thousand_points_fit_into_a_request(api: Api, sli: Sli) -> None:
    at = point(0, 0, 60)["at"]
    points = [{**point(n, n, source=f"host-{n}", boot="b" * 36), "at": at} for n in range(10_000)]

    response = api.post("/sli/", {"points": points})

    assert response.json()["accepted"] == 10_000
    assert CounterMinute.objects.count() == 1


def test_batch_of_deltas_is_taken_once(api: Api, sli: Sli) -> None:
    body = {"batch_id": "b1", "deltas": [point(4, 5, 30), point(1, 1, 0), point(9, 9, slo="x")]}

    first, again = api.post("/sli/", body).json(), api.post("/sli/", body).json()

    assert (first["accepted"], first["duplicate"]) == (2, False)
    assert again == {**first, "duplicate": True}
    assert total(sli) == (5, 6)


def test_same_batch_of_another_sender_is_another(api: Api, sli: Sli) -> None:
    body = {"batch_id": "b1", "deltas": [point(4, 5)]}
    api.post("/sli/", body)

    assert as_role("operator").post("/sli/", body).json()["duplicate"] is False
    assert total(sli) == (8, 10)


def test_batch_of_which_nothing_was_taken_may_come_again(api: Api) -> None:
    body = {"batch_id": "b1", "deltas": [point(4, 5)]}
    assert api.post("/sli/", body).status_code == 400
    assert not DeltaBatch.objects.exists()

    sli = objective()

    assert api.post("/sli/", body).json()["accepted"] == 1
    assert total(sli) == (4, 5)


@pytest.mark.parametrize("body", ["[]", "{", '"points"', '{"points": [{"good": NaN}]}'])
def test_what_is_no_json_object_is_refused(api: Api, body: str) -> None:
    assert api.post("/sli/", body).status_code == 400


@pytest.mark.parametrize(
    ("named", "status"),
    [
        ({"slo": "core-availability", "source": "host-7", "good": 1, "total": 1}, 200),
        ({"slo": "core-availability", "source": "core/a1", "good": 1, "total": 1}, 200),
        ({"slo": "core-availability", "source": "gateway/a1", "good": 1, "total": 1}, 403),
        ({"metric": "http", "service": "gateway", "buckets": {"+Inf": 1}}, 403),
    ],
)
def test_token_that_is_limited_pushes_for_its_own_services(
    named: dict[str, Any], status: int
) -> None:
    objective(service="core")

    response = limited_to("core").post("/sli/", {"points": [named]})

    assert response.status_code == status
    assert ("can't act for gateway" in response.text) == (status == 403)
    assert Series.objects.exists() == (status == 200)


@pytest.mark.parametrize("service", ["gateway", ""], ids=["another service's", "no service's"])
@pytest.mark.parametrize(
    "body",
    [
        {"points": [point(1, 1), point(1, 1, slo="foreign")]},
        {"batch_id": "b1", "deltas": [point(1, 1), point(1, 1, slo="foreign")]},
    ],
    ids=["points", "deltas"],
)
def test_limited_token_that_names_a_foreign_slo_is_refused(
    body: dict[str, Any], service: str
) -> None:
    objective(service="core")
    objective("foreign", service=service)

    response = limited_to("core").post("/sli/", body)

    assert response.status_code == 403
    assert "foreign" in response.json()["detail"]
    assert not Series.objects.exists()
    assert not EventCount.objects.exists()


def test_limited_token_that_names_an_unknown_slo_is_told_so_like_any_other() -> None:
    objective(service="core")

    response = limited_to("core").post("/sli/", {"points": [point(1, 1), point(1, 1, slo="gone")]})

    assert response.status_code == 200
    assert "There is no SLO gone." in response.json()["refused"][0]["error"]
