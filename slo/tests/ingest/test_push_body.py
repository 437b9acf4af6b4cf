"""Pushed bodies are parsed strictly, and each error names its field."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.core.errors import InvalidInput
from slo.ingest import push_body
from slo.ingest.push_body import Deltas, parse_body

POINT = {"slo": "core", "good": 1, "total": 2}
HISTOGRAM = {"metric": "latency_ms", "service": "core", "buckets": {"100": 1, "+Inf": 2}}


def parse_errors(document: dict[str, Any]) -> dict[str, list[str]]:
    with pytest.raises(InvalidInput) as caught:
        parse_body(document)
    return dict(caught.value.errors)


def test_everything_a_point_may_say() -> None:
    times = {
        "source": "host-1",
        "boot": "b",
        "at": "2026-11-20T12:00:00.5+01:00",
        "started_at": "2026-11-20 10:00:00Z",
    }

    entries = parse_body({"points": [{**POINT, **times}]})

    assert isinstance(entries, list)
    (point,) = entries
    assert (point.slo, point.good, point.total) == ("core", 1, 2)
    assert (point.source, point.boot) == ("host-1", "b")
    assert point.at == datetime(2026, 11, 20, 11, 0, 0, 500_000, tzinfo=UTC)
    assert point.started_at == datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"good": 3}, "good"),
        ({"good": -1}, "good"),
        ({"good": True}, "good"),
        ({"good": "1"}, "good"),
        ({"good": None}, "good"),
        ({"total": 2**53 + 2}, "total"),
        ({"slo": ""}, "slo"),
        ({"slo": 5}, "slo"),
        ({"slo": "a\0"}, "slo"),
        ({"slo": None}, "slo"),
        ({"source": "x" * 201}, "source"),
        ({"boot": "(times)"}, "boot"),
        ({"at": "yesterday"}, "at"),
        ({"at": ""}, "at"),
        ({"at": "2026-11-20T12:00:00"}, "at"),
        ({"at": 1763640000}, "at"),
        ({"started_at": "2026-13-20T12:00:00Z"}, "started_at"),
        ({"startd_at": "2026-11-20T12:00:00Z"}, "startd_at"),
        ({"buckets": {"+Inf": 1}}, "good"),
        ({"metric": "latency_ms"}, "service"),
    ],
)
def test_wrong_field_of_a_point_is_named(change: dict[str, Any], named: str) -> None:
    assert f"points[1].{named}" in parse_errors({"points": [POINT, {**POINT, **change}]})


@pytest.mark.parametrize(
    ("buckets", "word"),
    [
        ({}, "1 to 100"),
        ([], "object"),
        ({"100": 1}, "+Inf"),
        ({"100": 3, "+Inf": 2}, "cumulative"),
        ({"100": 1, "1e2": 1, "+Inf": 2}, "twice"),
        ({"0": 1, "+Inf": 2}, "above 0"),
        ({"1_0": 1, "+Inf": 2}, "above 0"),
        ({"nan": 1, "+Inf": 2}, "above 0"),
        ({"100": -1, "+Inf": 2}, "from 0"),
    ],
)
def test_wrong_buckets_say_what_they_must_be(buckets: Any, word: str) -> None:
    entries = parse_errors({"points": [{**HISTOGRAM, "buckets": buckets}]})

    assert word in entries["points[0].buckets"][0]


def test_histogram_is_of_a_service_or_of_an_slo() -> None:
    of_slo = {"slo": "core", "buckets": {"1000": 90, "3000.5": 99, "+Inf": 100}}
    entries = parse_body({"points": [HISTOGRAM, of_slo]})

    assert isinstance(entries, list)
    assert entries[0].metric == "latency_ms"
    assert entries[1].buckets == ((1000, 90), (3000.5, 99), (float("inf"), 100))
    assert "points[0].slo" in parse_errors({"points": [{**HISTOGRAM, "slo": "core"}]})


def test_deltas_need_the_name_of_their_batch() -> None:
    delta = {**POINT, "at": "2026-11-20T12:00:00Z"}

    entries = parse_body({"batch_id": "7", "deltas": [delta]})

    assert isinstance(entries, Deltas)
    assert (entries.batch_id, entries.deltas[0].total) == ("7", 2)
    assert list(parse_errors({"deltas": [delta]})) == ["batch_id"]
    assert list(parse_errors({"deltas": [delta], "batch_id": ""})) == ["batch_id"]
    assert list(
        parse_errors({"batch_id": "7", "deltas": [{"slo": "a", "good": 2, "total": 1}]})
    ) == ["deltas[0].good"]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"points": {}},
        {"points": None},
        {"points": [POINT], "deltas": []},
        {"points": [POINT], "batch_id": "1"},
        {"points": [POINT] * 10_001},
    ],
)
def test_it_is_either_points_or_deltas_and_not_too_many(document: dict[str, Any]) -> None:
    assert "points" in parse_errors(document)


def test_of_very_many_mistakes_some_are_named() -> None:
    assert len(parse_errors({"points": [{}] * 5000})) == push_body.MAX_ERRORS


texts = st.sampled_from(["core", "", "a\0", "x" * 1001, "(times)", "host", None, 5])
counts = st.sampled_from([0, 1, 1.5, 2**53, 2**53 + 2, -1, True, None, "1"])
moments = st.sampled_from([None, "", "2026-11-20T12:00:00Z", "2026-11-20T12:00:00", 5])
fields = {"slo": texts, "good": counts, "total": counts, "source": texts, "boot": texts}


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.fixed_dictionaries({}, optional={**fields, "at": moments, "started_at": moments}))
def test_reading_fast_and_reading_slowly_is_the_same(point: dict[str, Any]) -> None:
    errors: dict[str, list[str]] = {}
    slowly = push_body._parse_any_point(point, 0, errors)

    fast = push_body._parse_plain_point(point, {})

    assert fast is None or (fast == slowly and not errors)
    if not errors and None not in point.values():
        assert fast == slowly
