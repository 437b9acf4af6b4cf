"""Differences between two policies."""

import pytest

from breakers.policies.differences import as_text, list_differences

ROUTE_A, LATER_A, ROUTE_B = (
    {"pattern": pattern, "timeout_ms": milliseconds}
    for pattern, milliseconds in (("/a", 1), ("/a", 2), ("/b", 3))
)


@pytest.mark.parametrize(
    ("before", "after", "differences"),
    [
        pytest.param(
            {"timeout_ms": 60, "breaker": {"open_seconds": 30, "failure_rate": 0.5}},
            {"timeout_ms": 60, "breaker": {"open_seconds": 45, "failure_rate": 0.5}},
            ["breaker.open_seconds: 30 → 45"],
            id="path of a value",
        ),
        pytest.param(
            {"retry": None},
            {"retry": {"attempts": 3}},
            ["retry.attempts: – → 3"],
            id="section that comes",
        ),
        pytest.param(
            {"retry": {"attempts": 3}},
            {"retry": None},
            ["retry.attempts: 3 → –"],
            id="section that goes",
        ),
        pytest.param(
            {"routes": [ROUTE_A]},
            {"routes": [LATER_A, ROUTE_B]},
            [
                "routes.0.timeout_ms: 1 → 2",
                "routes.1.pattern: – → /b",
                "routes.1.timeout_ms: – → 3",
            ],
            id="routes one by one",
        ),
        pytest.param({"notes": "", "routes": []}, {"owner": None}, [], id="nothing and empty"),
    ],
)
def test_each_value_that_differs_is_listed_by_its_path(before, after, differences):
    assert [str(one) for one in list_differences(before, after)] == differences


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([503, "timeout"], "503, timeout"),
        ({"provider": "anthropic"}, "provider anthropic"),
        (False, "no"),
        (0, "0"),
    ],
)
def test_values_are_shown_for_people(value, text):
    assert as_text(value) == text
