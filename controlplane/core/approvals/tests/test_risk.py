"""The risk of a request: the limits of S2 §9, and that nothing makes a kind milder."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.approvals.risk import (
    CLASSES,
    LIFETIME,
    Risk,
    RiskFacts,
    classify_facts,
    classify_request,
)

LIMITS = [
    (RiskFacts(), "low"),
    (RiskFacts(tags=frozenset({"financial"})), "high"),
    (RiskFacts(tags=frozenset({"destructive"})), "critical"),
    (RiskFacts(tags=frozenset({"data_destructive"})), "critical"),
    (RiskFacts(tags=frozenset({"financial", "destructive"})), "critical"),
    (RiskFacts(tags=frozenset({"routine"})), "low"),
    (RiskFacts(recipients=100), "low"),
    (RiskFacts(recipients=101), "high"),
    (RiskFacts(cost_usd=50.0), "low"),
    (RiskFacts(cost_usd=50.01), "high"),
    (RiskFacts(cost_usd=float("nan")), "high"),
    (RiskFacts(duration_minutes=120), "low"),
    (RiskFacts(duration_minutes=120.5), "medium"),
    (RiskFacts(duration_minutes=500, recipients=500), "high"),
]
FACTS = st.builds(
    RiskFacts,
    tags=st.frozensets(st.sampled_from(["financial", "destructive", "routine"])),
    recipients=st.integers(0, 500),
    cost_usd=st.floats(0, 500),
    duration_minutes=st.floats(0, 500),
)


@pytest.mark.parametrize(("facts", "expected"), LIMITS)
def test_each_limit_has_its_class(facts, expected):
    assert classify_facts(facts) == expected


@given(FACTS, FACTS)
def test_more_never_makes_it_milder(one, other):
    both = RiskFacts(
        tags=one.tags | other.tags,
        recipients=max(one.recipients, other.recipients),
        cost_usd=max(one.cost_usd, other.cost_usd),
        duration_minutes=max(one.duration_minutes, other.duration_minutes),
    )

    worst = max(CLASSES.index(classify_facts(one)), CLASSES.index(classify_facts(other)))
    assert CLASSES.index(classify_facts(both)) == worst


@pytest.mark.parametrize(
    ("kind", "at_least", "expected"),
    [
        ("release", "", "high"),
        ("release", "critical", "critical"),
        ("permanent", "", "high"),
        ("permanent", "low", "high"),
        ("purge", "", "critical"),
        ("rule_change", "", "high"),
        ("break_glass_review", "", "critical"),
    ],
)
def test_kind_is_the_least_there_is(kind, at_least, expected):
    assert classify_request(kind, at_least=at_least) == expected


def test_facts_make_a_request_worse():
    assert classify_request("rule_change", RiskFacts(tags=frozenset({"destructive"}))) == "critical"


def test_what_is_critical_lapses_after_two_hours():
    assert LIFETIME[Risk.CRITICAL] == timedelta(hours=2)
    assert set(LIFETIME) == set(Risk)
