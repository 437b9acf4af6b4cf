"""Differences between two policies."""

from breakers.policies.differences import as_text, list_differences


def describe_differences(before, after):
    return [str(one) for one in list_differences(before, after)]


def test_each_value_that_differs_is_told_by_its_path():
    before = {"timeout_ms": 60, "breaker": {"open_seconds": 30, "failure_rate": 0.5}}
    after = {"timeout_ms": 60, "breaker": {"open_seconds": 45, "failure_rate": 0.5}}

    assert describe_differences(before, after) == ["breaker.open_seconds: 30 → 45"]


def test_section_that_comes_or_goes_is_told_value_by_value():
    assert describe_differences({"retry": None}, {"retry": {"attempts": 3}}) == [
        "retry.attempts: – → 3"
    ]
    assert describe_differences({"retry": {"attempts": 3}}, {"retry": None}) == [
        "retry.attempts: 3 → –"
    ]


def test_routes_are_compared_one_by_one():
    before = {"routes": [{"pattern": "/a", "timeout_ms": 1}]}
    after = {"routes": [{"pattern": "/a", "timeout_ms": 2}, {"pattern": "/b", "timeout_ms": 3}]}

    assert describe_differences(before, after) == [
        "routes.0.timeout_ms: 1 → 2",
        "routes.1.pattern: – → /b",
        "routes.1.timeout_ms: – → 3",
    ]


def test_nothing_and_an_empty_text_are_the_same():
    assert describe_differences({"notes": "", "routes": []}, {"owner": None}) == []


def test_values_are_shown_for_people():
    assert as_text([503, "timeout"]) == "503, timeout"
    assert as_text({"provider": "anthropic"}) == "provider anthropic"
    assert as_text(False) == "no"
    assert as_text(0) == "0"
