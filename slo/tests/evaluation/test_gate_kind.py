"""The verdict of an SLO's gate, up to the last second and the last event."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.core.gates.questions import FAIL, NO_DATA, PASS, GateQuestion
from controlplane.core.gates.verdicts import Observation
from slo import gate_kinds

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SPEC = {"type": "slo", "slo": "core", "window": "5m", "max_burn_rate": 1, "min_events": 100}
SLO = GateQuestion("ramp:12:1:0", {**SPEC, "min_bad": 3}, NOW - timedelta(minutes=5))


def observe(verdict: str, seconds_ago: float = 0, **evidence: Any) -> Observation:
    return Observation(verdict, NOW - timedelta(seconds=seconds_ago), evidence)


def test_slo_that_was_never_evaluated_is_no_data() -> None:
    answer = gate_kinds.evaluate(SLO, None, NOW)

    assert answer.verdict == NO_DATA
    assert answer.evidence["why"] == "this SLO has not been evaluated yet"


@pytest.mark.parametrize(
    ("verdict", "seconds_ago", "expected"),
    [
        ("pass", 60, PASS),
        ("fail", 60, FAIL),
        ("pass", 61, NO_DATA),
        ("fail", 61, NO_DATA),
        ("pass", 301, NO_DATA),
        ("pass", -61, NO_DATA),
    ],
)
def test_verdict_counts_for_sixty_seconds(verdict: str, seconds_ago: int, expected: str) -> None:
    answer = gate_kinds.evaluate(SLO, observe(verdict, seconds_ago, good=900, total=1000), NOW)

    assert answer.verdict == expected


@pytest.mark.parametrize(
    ("verdict", "good", "total", "expected"),
    [
        ("pass", 100, 100, PASS),
        ("pass", 99, 99, NO_DATA),
        ("fail", 0, 99, NO_DATA),  # However bad: it is no sample.
        ("fail", 98, 100, PASS),
        ("fail", 97, 100, FAIL),
        ("fail", 997, 1000, FAIL),
        ("fail", 97.5, 100.0, PASS),  # Prometheus extrapolates.
        ("no_data", 97, 100, NO_DATA),
    ],
)
def test_an_slo_stands_on_enough_events_and_fails_on_enough_bad_ones(
    verdict: str, good: float, total: float, expected: str
) -> None:
    answer = gate_kinds.evaluate(SLO, observe(verdict, good=good, total=total, burn_rate=1.4), NOW)

    assert answer.verdict == expected
    assert answer.evidence["burn_rate"] == 1.4
    assert answer.verdict in (PASS, FAIL) or answer.evidence["why"]


@pytest.mark.parametrize(
    ("good", "expected"),
    [(998, "only 2 bad events; it fails at 3"), (999, "only 1 bad event; it fails at 3")],
)
def test_slo_that_passes_because_bad_events_are_few_says_so(good: int, expected: str) -> None:
    answer = gate_kinds.evaluate(SLO, observe("fail", good=good, total=1000), NOW)

    assert answer.evidence["why"] == expected


@pytest.mark.parametrize(
    ("step_seconds", "expected"),
    [
        (24, "4 of 100 events since the step began"),
        (299, "4 of 100 events since the step began"),
        (300, "4 of 100 events in the last 5 min of the step"),
    ],
)
def test_too_few_events_are_of_the_time_that_was_counted(step_seconds: int, expected: str) -> None:
    question = replace(SLO, since=NOW - timedelta(seconds=step_seconds))

    answer = gate_kinds.evaluate(question, observe("pass", good=4, total=4), NOW)

    assert (answer.verdict, answer.evidence["why"]) == (NO_DATA, expected)


def test_too_few_events_say_how_many_were_bad() -> None:
    answer = gate_kinds.evaluate(SLO, observe("fail", good=0, total=34), NOW)

    assert answer.verdict == NO_DATA
    assert answer.evidence["why"].startswith("34 of 100 events ")
    assert answer.evidence["why"].endswith(", 34 of them bad")


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"good": 100},
        {"good": None, "total": 100},
        {"good": "100", "total": "100"},
        {"good": True, "total": 1000},
        {"good": 200, "total": 100},
        {"good": -1, "total": 100},
        {"good": 0, "total": 10**400},
        {"good": float("nan"), "total": float("inf")},
    ],
)
@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_an_slo_that_does_not_say_how_many_events_is_no_data(
    verdict: str, counts: dict[str, Any]
) -> None:
    answer = gate_kinds.evaluate(SLO, observe(verdict, **counts), NOW)

    assert answer.verdict == NO_DATA
    assert "number of events" in answer.evidence["why"]
