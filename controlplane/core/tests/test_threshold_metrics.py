"""Comparing figures with limits, and finding measures by name."""

from datetime import timedelta

import pytest

from controlplane.core.threshold_metrics import (
    COMPARISONS,
    THRESHOLD_METRICS,
    MetricQuery,
    find_metric,
    format_percent,
)


@pytest.mark.parametrize(
    ("comparison", "some", "beyond"),
    [
        (">", 1, False),
        (">", 2, True),
        (">=", 1, True),
        (">=", 0, False),
        ("<", 1, False),
        ("<", 0, True),
        ("<=", 1, True),
        ("<=", 2, False),
    ],
)
def test_a_share_is_compared_exactly(comparison, some, beyond):
    assert MetricQuery("rate", comparison, 0.01).beyond(some, 100) is beyond


def test_what_binary_fractions_can_not_tell_apart_is_told_apart():
    query = MetricQuery("rate", ">", 0.1)

    assert not query.beyond(10**17, 10**18)
    assert query.beyond(10**17 + 1, 10**18)


def test_what_is_allowed_is_said_in_words():
    texts = {sign: MetricQuery("", sign, 0.05).allowed(format_percent) for sign in COMPARISONS}

    assert texts == {
        ">": "limit 5 %",
        ">=": "limit 5 %",
        "<": "minimum 5 %",
        "<=": "minimum 5 %",
    }


def test_a_measure_is_found_by_its_name_and_a_part_only_where_it_has_parts():
    found = find_metric("latency_ms:e2e")

    assert found is not None
    assert (found[0].name, found[1]) == ("latency_ms", "e2e")
    assert find_metric("timeout_rate:e2e") is None
    assert find_metric("latency_ms:") is None
    assert find_metric("nobody") is None


def test_every_measure_says_what_may_be_asked_of_it():
    for name, one in THRESHOLD_METRICS.items():
        assert one.name == name
        assert one.title
        assert one.about.endswith(".")
        assert one.statistics
        assert set(one.comparisons) <= set(COMPARISONS)
        assert one.windows is None or one.windows[0] >= timedelta(minutes=1)
