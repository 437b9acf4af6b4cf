"""Concurrent writers of the same counters: nothing is lost, counted twice, or deadlocked."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
from django.db import connection, transaction

from controlplane.core.actors import system_actor
from controlplane.core.gates.models import EventCount
from controlplane.core.http.tests.callers import at_once
from slo.counters import compaction
from slo.ingest import client_reports, points
from slo.ingest.push_body import Delta, Point
from slo.models import DeltaBatch, ReportedEvents, Sli

from .sample_helpers import MINUTE, NOW, SentSample, load_counters, moment_at, objective, record

pytestmark = pytest.mark.django_db(transaction=True)

SLIS = 40
ROUNDS = 8
FAR_AHEAD = NOW + timedelta(days=3, minutes=1)


@pytest.fixture
def slis() -> list[Sli]:
    return [objective(f"slo-{n}") for n in range(SLIS)]


def samples(slis: list[Sli], source: str, seed: int) -> list[list[SentSample]]:
    """Return batches in any order: ten more events of each SLI every 20 s."""
    told = [
        [SentSample(sli.pk, source, "", moment_at(20 * n - 3600), 10 * n, 10 * n) for sli in slis]
        for n in range(ROUNDS)
    ]
    random = Random(seed)
    for batch in told:
        random.shuffle(batch)
    return told


def push_batches(batches: list[list[SentSample]]) -> int:
    return sum(sum(record(batch, now=NOW).values()) for batch in batches)


def totals(slis: list[Sli]) -> set[tuple[float, float]]:
    return {load_counters(sli, MINUTE, MINUTE)[0][:2] for sli in slis}


def test_batches_of_several_sources_lose_nothing(slis: list[Sli]) -> None:
    calls = [partial(push_batches, samples(slis, f"host-{n}", n)) for n in range(4)]

    recorded = at_once(*calls)

    assert recorded == [SLIS * ROUNDS] * 4
    assert totals(slis) == {(4 * 10 * (ROUNDS - 1),) * 2}


def test_batches_out_of_order_and_minutes_that_are_packed_lose_nothing(slis: list[Sli]) -> None:
    at_work = [True] * 3

    def backwards(number: int) -> int:
        try:
            return push_batches(samples(slis, f"host-{number}", number)[::-1])
        finally:
            at_work[number] = False

    def pack() -> int:
        packed = 0
        while any(at_work):
            packed += compaction.compact_minutes(FAR_AHEAD, most=1000)
        return packed

    calls: list[Callable[[], Any]] = [partial(backwards, n) for n in range(3)]
    *recorded, packed = at_once(*calls, pack)

    assert recorded == [SLIS * ROUNDS] * 3
    assert packed > 0
    assert totals(slis) == {(3 * 10 * (ROUNDS - 1),) * 2}


def test_packing_waits_for_whoever_adds(slis: list[Sli]) -> None:
    push_batches(samples(slis, "host", 1))
    late = [
        SentSample(slis[0].pk, "late", "", moment_at(20 * n - 3590), 7 * n, 7 * n) for n in range(2)
    ]
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            record(late, now=NOW)
            packing_done = pool.submit(compact_meanwhile)
            with pytest.raises(TimeoutError):
                packing_done.result(timeout=0.5)
        assert packing_done.result(timeout=10) > 0

    assert totals(slis[:1]) == {(10 * (ROUNDS - 1) + 7,) * 2}
    assert totals(slis[1:]) == {(10 * (ROUNDS - 1),) * 2}


def compact_meanwhile() -> int:
    try:
        return compaction.compact_minutes(FAR_AHEAD, most=10_000)
    finally:
        connection.close()


def test_same_samples_at_once_count_once(slis: list[Sli]) -> None:
    calls = [partial(push_batches, samples(slis, "host", n)) for n in range(4)]

    recorded = at_once(*calls)

    assert sum(recorded) == SLIS * ROUNDS
    assert totals(slis) == {(10 * (ROUNDS - 1),) * 2}
    assert sum(EventCount.objects.values_list("total", flat=True)) == SLIS * 10 * (ROUNDS - 1)


def test_batch_of_deltas_that_comes_at_once_is_taken_once(slis: list[Sli]) -> None:
    told = [Delta(f"slo-{n}", 3, 4) for n in range(SLIS)]

    def take() -> dict[str, Any]:
        return points.accept_batch(batch_id="b1", deltas=told, actor=system_actor("test"), now=NOW)

    responses = at_once(*[take] * 4)

    assert sorted(one["duplicate"] for one in responses) == [False, True, True, True]
    assert {one["accepted"] for one in responses} == {SLIS}
    assert totals(slis) == {(3, 4)}
    assert DeltaBatch.objects.count() == 1


def test_reports_are_added_once_though_several_fold(slis: list[Sli]) -> None:
    ReportedEvents.objects.bulk_create(
        ReportedEvents(
            slo=f"slo-{n % SLIS}",
            instance=f"core/a{n}",
            began_at=moment_at(-5),
            ended_at=moment_at(0),
            good=1,
            total=2,
        )
        for n in range(SLIS * 50)
    )

    added = at_once(*[partial(client_reports.add_reported, NOW, most=10_000)] * 3)

    assert sum(added) == SLIS * 50
    assert totals(slis) == {(50, 100)}
    assert not ReportedEvents.objects.exists()


def test_new_histograms_at_once_are_made_once(slis: list[Sli]) -> None:
    def push(source: str, names: list[str]) -> dict[str, Any]:
        edges = ((100.0, 1.0), (250.0, 2.0), (float("inf"), 3.0))
        told = [Point(metric=name, service="core", buckets=edges, source=source) for name in names]
        told += [Point(slo=f"slo-{n}", good=1, total=1, source=source) for n in range(SLIS)]
        return points.accept_points(points=told, now=NOW)

    names = [f"metric-{n}" for n in range(20)]
    responses = at_once(*(partial(push, f"host-{n}", names[:: (-1) ** n]) for n in range(4)))

    assert [one["accepted"] for one in responses] == [20 + SLIS] * 4
    assert Sli.objects.filter(slo=None).count() == 60
