"""Percentiles from the edges of a histogram, compared with the latencies themselves."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from slo.ingest.histograms import nearest_edges
from slo.threshold_metrics import HistogramEdge, is_above, quantile_bound

P95 = Fraction(95, 100)
SHARES = [Fraction(1, 2), Fraction(9, 10), P95, Fraction(99, 100), Fraction(999, 1000)]


def edges_of(latencies, at):
    return [
        HistogramEdge(ms, sum(one <= ms for one in latencies), len(latencies)) for ms in sorted(at)
    ]


def percentile(latencies, share):
    """Return the lowest latency that this share of all is within."""
    return min(
        one
        for one in latencies
        if sum(other <= one for other in latencies) >= share * len(latencies)
    )


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=60),
    st.sets(st.integers(1, 100), max_size=8),
    st.sampled_from(SHARES),
    st.integers(1, 100),
)
def test_with_an_edge_at_the_limit_it_is_exact_and_without_it_never_wrong(
    latencies, at, share, limit
):
    truth = percentile(latencies, share) > limit

    assert is_above(edges_of(latencies, at | {limit}), share, limit) is truth
    assert is_above(edges_of(latencies, at - {limit}), share, limit) in (truth, None)


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=60),
    st.sets(st.integers(1, 100), min_size=1, max_size=8),
    st.sampled_from(SHARES),
)
def test_the_edge_that_is_told_is_the_first_that_the_percentile_is_within(latencies, at, share):
    value = percentile(latencies, share)

    assert quantile_bound(edges_of(latencies, at), share) == min(
        (ms for ms in at if ms >= value), default=None
    )


def test_exactly_the_share_within_the_limit_is_not_above_it():
    assert is_above([HistogramEdge(5000, 95, 100)], P95, 5000) is False
    assert is_above([HistogramEdge(5000, 94, 100)], P95, 5000) is True
    assert is_above([HistogramEdge(5000, 94_999_999, 100_000_000)], P95, 5000) is True


def test_without_an_edge_there_nobody_can_tell_unless_another_settles_it():
    between = [HistogramEdge(4000, 90, 100), HistogramEdge(6000, 99, 100)]

    assert is_above(between, P95, 5000) is None
    assert nearest_edges([one.ms for one in between], 5000) == [4000, 6000]
    assert is_above([HistogramEdge(4000, 96, 100)], P95, 5000) is False
    assert is_above([HistogramEdge(6000, 90, 100)], P95, 5000) is True
    assert is_above([], P95, 5000) is None
