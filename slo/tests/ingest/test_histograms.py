"""Latency histograms: each edge is counted, and an SLO takes the one at its threshold."""

from typing import Any

import pytest

from controlplane.core.errors import InvalidInput
from slo.ingest import histograms, points, push_body
from slo.models import Sli

from .sample_helpers import MINUTE, NOW, load_counters, moment_at, objective

pytestmark = pytest.mark.django_db


def push(*buckets: dict[str, float], seconds: float = 0, **fields: Any) -> dict[str, Any]:
    document = {
        "points": [
            {"buckets": one, "at": moment_at(seconds).isoformat(), **fields} for one in buckets
        ]
    }
    read_in = push_body.parse_body(document)
    assert isinstance(read_in, list)
    return points.accept_points(read_in, now=NOW)


@pytest.fixture
def slow() -> Sli:
    return objective("slow", kind="latency", threshold_ms=3000)


def test_latency_slo_counts_what_took_at_most_its_threshold(slow: Sli) -> None:
    push({"1000": 90, "3000": 99, "+Inf": 100}, slo="slow", seconds=-60)
    push({"1000": 91, "3000": 104, "+Inf": 110}, slo="slow")

    assert load_counters(slow, MINUTE, MINUTE) == [(5, 10, 1)]


@pytest.mark.parametrize(
    ("buckets", "fields"),
    [
        ({"1000": 1, "2500": 1, "5000": 1, "+Inf": 2}, "nearest are 2500 and 5000 ms"),
        ({"1000": 1, "+Inf": 2}, "nearest are 1000 ms"),
        ({"5000": 1, "+Inf": 2}, "nearest are 5000 ms"),
        ({"+Inf": 2}, "No bucket ends at 3000 ms, the SLO's threshold."),
    ],
)
def test_missing_threshold_is_refused_and_its_neighbours_named(
    slow: Sli, buckets: dict[str, float], fields: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        push(buckets, slo="slow")

    assert fields in caught.value.errors["points[0].buckets"][0]


def test_slo_without_a_threshold_takes_no_histogram() -> None:
    objective()

    with pytest.raises(InvalidInput) as caught:
        push({"+Inf": 1}, slo="core-availability")

    assert "send good and total" in caught.value.errors["points[0].buckets"][0]


def test_metric_has_counters_for_each_edge() -> None:
    fields = {"metric": "latency_ms", "service": "core", "source": "a"}
    assert push({"100": 5, "+Inf": 10}, seconds=-60, **fields)["accepted"] == 1
    push({"100": 7, "+Inf": 20}, **fields)
    assert push({"100": 7, "+Inf": 20}, **fields)["duplicates"] == 1

    rows = {sli.edge_ms: sli for sli in Sli.objects.filter(metric="latency_ms", service="core")}

    assert set(rows) == {100.0, None}
    assert load_counters(rows[100.0], MINUTE, MINUTE) == [(2, 10, 1)]
    assert load_counters(rows[None], MINUTE, MINUTE) == [(10, 10, 1)]


def test_restart_is_seen_at_every_edge() -> None:
    fields = {"metric": "latency_ms", "service": "core"}
    push({"100": 5, "200": 90, "+Inf": 100}, seconds=-60, **fields)
    push({"100": 6, "200": 95, "+Inf": 99}, **fields)

    counts = {sli.edge_ms: load_counters(sli, MINUTE, MINUTE)[0][:2] for sli in Sli.objects.all()}

    assert counts == {100.0: (6, 99), 200.0: (95, 99), None: (99, 99)}


def test_whoever_reports_cannot_make_edges_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "MAX_EDGES", 3)
    push({"100": 5, "+Inf": 10}, metric="a", service="core")
    assert push({"100": 6, "+Inf": 11}, metric="a", service="core", seconds=1)["accepted"] == 1

    with pytest.raises(InvalidInput) as caught:
        push({"100": 5, "+Inf": 10}, metric="b", service="core")

    assert "send fewer" in caught.value.errors["points[0].buckets"][0]


def test_point_with_too_many_edges_is_refused_and_others_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(histograms, "MAX_PER_SOURCE", 3)
    first, others = {"100": 5, "+Inf": 10}, {"200": 5, "300": 6, "+Inf": 10}

    result = push(first, others, {"200": 5, "+Inf": 10}, metric="a", service="core", source="s")

    assert [one["index"] for one in result["refused"]] == [1]
    assert "edges" in result["refused"][0]["error"]
    assert set(Sli.objects.values_list("edge_ms", flat=True)) == {100.0, 200.0, None}
    assert push(others, metric="b", service="core")["refused"] == []
