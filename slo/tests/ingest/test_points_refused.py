"""Points refused one by one: too many boots, or reserved sources."""

import time
from typing import Any

import pytest

from controlplane.core.actors import system_actor
from controlplane.core.errors import InvalidInput
from slo.arithmetic.boots import Boot, merge_samples
from slo.arithmetic.increments import Sample
from slo.ingest import points, push_body
from slo.models import Series, Sli

from .sample_helpers import NOW

pytestmark = pytest.mark.django_db


def push(*fields: dict[str, Any]) -> dict[str, Any]:
    document = {
        "points": [{"slo": "core-availability", "good": 1, "total": 1, **s} for s in fields]
    }
    read_in = push_body.parse_body(document)
    assert isinstance(read_in, list)
    return points.accept_points(read_in, now=NOW)


def test_request_tells_of_so_many_boots_of_a_source(
    sli: Sli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(points, "MAX_BOOTS", 2)

    result = push({"boot": "1"}, {"boot": "2"}, {"boot": "3"}, {"boot": "1"}, {"source": "b"})

    assert result["refused"] == [
        {"index": 2, "error": "A request can contain at most 2 boots of one source."}
    ]
    assert Series.objects.count() == 3


@pytest.mark.parametrize("source", ["import", "prometheus"])
def test_sources_that_are_ours_are_refused(sli: Sli, source: str) -> None:
    result = push({"source": source}, {"source": "a"})
    assert [one["index"] for one in result["refused"]] == [0]
    assert "reserved" in result["refused"][0]["error"]

    deltas = [push_body.Delta("core-availability", 1, 1, one) for one in ("a", source)]
    result = points.accept_batch(batch_id="1", deltas=deltas, actor=system_actor("test"), now=NOW)
    assert [one["index"] for one in result["refused"]] == [1]

    with pytest.raises(InvalidInput) as caught:
        push({"source": source})
    assert list(caught.value.errors) == ["points[0].source"]


def test_many_boots_of_a_source_are_merged_in_a_moment() -> None:
    known = {f"k{n}": Boot([Sample(n, n, n)], n) for n in range(5000)}
    deltas = {f"n{n}": [Sample(5000 + n, n, n)] for n in range(5000)}
    began = time.process_time()

    merged = merge_samples(known, deltas, {})

    assert time.process_time() - began < 2
    assert merged.boots["n4999"].counted_from == 9998
    assert merged.boots["n0"].counted_from == 4999
