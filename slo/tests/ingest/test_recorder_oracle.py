"""Counters of every minute equal those of an oracle, whatever sources send in any order."""

from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slo.counters import compaction, reader
from slo.ingest import deferred_updates
from slo.models import CounterHour, CounterMinute

from .oracle import US, Oracle, OracleSample
from .sample_helpers import MINUTE, NOW, load_counters, objective, push

START = (MINUTE - 90) * 60 * US
FIRST, LAST = MINUTE - 100, MINUTE + 1
FAR_AHEAD = NOW + timedelta(days=3, minutes=-20)

gaps = st.one_of(
    st.sampled_from([0, 1, 10, 15, 30, 60, 119, 120, 121, 180, 300, 601]).map(lambda s: s * US),
    st.integers(1, 400 * US),
)
more = st.sampled_from([0, 0, 1, 3, 10, 100, 997])


@st.composite
def boot(draw: st.DrawFn, source: str, name: str) -> list[OracleSample]:
    """Generate the samples of one process, sometimes with counters that went down."""
    at = START + draw(st.integers(0, 40 * 60)) * US
    started = draw(st.one_of(st.none(), st.integers(0, 400 * US).map(lambda ago: at - ago)))
    good, bad = draw(more), draw(more)
    samples = []
    for _ in range(draw(st.integers(1, 9))):
        samples.append(OracleSample(source, name, at, good, good + bad, started))
        at += draw(gaps)
        good, bad = good + draw(more), bad + draw(more)
        if draw(st.integers(0, 5)) == 0:
            good, bad = draw(st.sampled_from([(0, 0), (good // 2, bad), (good, bad // 2), (1, 1)]))
    return samples


@st.composite
def traffic(draw: st.DrawFn) -> list[OracleSample]:
    """Generate several sources with several boots each, some at the same time."""
    samples: list[OracleSample] = []
    for source in "ab"[: draw(st.integers(1, 2))]:
        for name in "123"[: draw(st.integers(1, 3))]:
            samples += draw(boot(source, name))
    return samples


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[OracleSample], list[list[OracleSample]]]:
    """Generate traffic and its batches: in any order, some more than once."""
    samples = draw(traffic())
    sent = samples + draw(st.lists(st.sampled_from(samples), max_size=6))
    order = draw(st.one_of(st.just(sorted(sent, key=lambda one: one.at)), st.permutations(sent)))
    cuts = sorted(draw(st.sets(st.integers(0, len(order)), max_size=6)))
    return samples, [order[low:high] for low, high in pairwise([0, *cuts, len(order)])]


@pytest.mark.slow
@pytest.mark.django_db
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(given=deliveries(), pack_after=st.integers(0, 6), fold_after=st.integers(-1, 6))
def test_any_order_of_arrival_counts_as_if_all_had_been_known_at_once(
    db: None,
    given: tuple[list[OracleSample], list[list[OracleSample]]],
    pack_after: int,
    fold_after: int,
) -> None:
    samples, batches = given
    with transaction.atomic(), pytest.MonkeyPatch.context() as limits:
        if fold_after >= 0:  # All that moves more than some rows is left to the tick.
            limits.setattr(deferred_updates, "MAX_ROWS", 0)
        sli = objective()
        for number, batch in enumerate(batches):
            push(sli, batch)
            if number == pack_after:
                compaction.compact_minutes(FAR_AHEAD, most=10_000)
            if number == fold_after:
                deferred_updates.apply_deferred(most=10_000)
        deferred_updates.apply_deferred(most=10_000)

        expected = Oracle(samples).counts(FIRST, LAST)
        assert load_counters(sli, FIRST, LAST) == expected
        history = reader.load_history(sli.pk, FIRST, LAST)
        assert [tuple(history.counts_at(minute)) for minute in range(FIRST, LAST + 1)] == expected

        assert sum(push(sli, batch) for batch in batches) == 0  # All of it again is nothing new.
        compaction.compact_minutes(FAR_AHEAD + timedelta(days=1), most=10_000)
        assert CounterHour.objects.exists()
        assert not CounterMinute.objects.exists()
        assert load_counters(sli, FIRST, LAST) == expected
        transaction.set_rollback(True)
