"""Known windows and firing rules, both exact."""

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slo.arithmetic.evaluate import (
    FIRING,
    OK,
    UNKNOWN,
    Evaluation,
    evaluate,
    format_burn_rate,
)
from slo.arithmetic.minutes import window_minutes
from slo.arithmetic.objective import BurnRateRule, Objective
from slo.arithmetic.windows import needed_minutes

from .histories import NOTHING_KNOWN, MinuteEvents, Past, make_objective, rule, steady_traffic

PAGE = rule("1h", "5m", "14")


def evaluate_past(past: Past, objective: Objective, at: int | None = None) -> Evaluation:
    return evaluate(objective, past.last if at is None else at, past.values_at, past.begin)


def test_nothing_is_known_without_a_first_row() -> None:
    evaluation = evaluate(make_objective(PAGE), 100, Past([]).values_at, None)

    assert evaluation.state == UNKNOWN
    assert set(evaluation.burn_rates.values()) == {None}
    assert set(evaluation.coverage.values()) == {0.0}
    assert (evaluation.remaining_ratio, evaluation.exhausts_at) == (None, None)


def test_nothing_is_known_before_the_first_row() -> None:
    past = Past(steady_traffic(600, "0.5"), begin=1000)

    assert evaluate_past(past, make_objective(PAGE), at=999).state == UNKNOWN


def test_zero_traffic_is_unknown_and_never_a_division_by_zero() -> None:
    evaluation = evaluate_past(Past([MinuteEvents(0, 0)] * 600), make_objective(PAGE))

    assert evaluation.state == UNKNOWN
    assert evaluation.burn_rates["5m"] is None
    assert evaluation.coverage["5m"] == 1


@pytest.mark.parametrize(("covered", "state"), [(4, UNKNOWN), (5, FIRING)])
def test_a_short_window_is_known_once_five_minutes_are_covered(covered: int, state: str) -> None:
    hour = [*steady_traffic(60, "0.5"), *[MinuteEvents(5000, 10_000, is_covered=False)] * 6]
    minutes = [*hour, *steady_traffic(covered, "0.5")]

    evaluation = evaluate_past(Past(minutes), make_objective(rule("1h", "10m", "14")))

    assert evaluation.rules[0].state == state


@pytest.mark.parametrize(("covered", "is_known"), [(35, False), (36, True)])
def test_a_long_window_is_known_once_a_tenth_of_it_is_covered(covered: int, is_known: bool) -> None:
    minutes = [*steady_traffic(covered), *[NOTHING_KNOWN] * 300]

    evaluation = evaluate_past(Past(minutes), make_objective(PAGE))

    assert (evaluation.burn_rates["6h"] is not None) is is_known
    assert evaluation.coverage["6h"] == round(covered / 360, 6)


@pytest.mark.parametrize(("min_events", "state"), [(50, FIRING), (51, UNKNOWN)])
def test_fewer_events_than_the_guard_asks_for_are_unknown(min_events: int, state: str) -> None:
    past = Past([MinuteEvents(5, 10)] * 60)

    assert evaluate_past(past, make_objective(PAGE, min_events=min_events)).state == state


@pytest.mark.parametrize(("bad_share", "state"), [("0.0002", OK), ("0.5", UNKNOWN)])
def test_one_known_window_decides_only_if_it_does_not_burn(bad_share: str, state: str) -> None:
    past = Past([*steady_traffic(40, bad_share), *[NOTHING_KNOWN] * 20])

    assert evaluate_past(past, make_objective(PAGE)).rules[0].state == state


@pytest.mark.parametrize(("silent", "state"), [(4, OK), (5, UNKNOWN)])
@pytest.mark.parametrize("rules", [(PAGE,), (rule("6h", "30m", "6"),), ()])
def test_nothing_is_ok_after_five_minutes_without_samples(
    rules: tuple[BurnRateRule, ...], silent: int, state: str
) -> None:
    past = Past([*steady_traffic(360), *[NOTHING_KNOWN] * silent])

    evaluation = evaluate_past(past, make_objective(*rules))

    assert evaluation.present_state == state
    assert {evaluation.state, *(one.state for one in evaluation.rules)} == {OK}


def test_an_excluded_time_with_samples_is_not_without_samples() -> None:
    past = Past(steady_traffic(60))

    assert evaluate_past(past, make_objective(PAGE, excluded=[(50, 59)])).present_state == OK


def test_an_slo_fires_if_any_rule_does_and_is_unknown_if_any_is_and_none_fires() -> None:
    new = Past(steady_traffic(60, "0.5"))
    both = make_objective(PAGE, rule("30d", "3d", "1"))

    assert evaluate_past(new, both).state == FIRING
    assert (
        evaluate_past(Past(steady_traffic(60)), make_objective(rule("6h", "30m", "6"), PAGE)).state
        == OK
    )
    assert evaluate_past(new, make_objective(rule("30d", "3d", "1"))).state == UNKNOWN


def test_an_slo_without_rules_is_known_once_any_window_is() -> None:
    assert evaluate_past(Past(steady_traffic(60)), make_objective()).state == OK
    assert evaluate_past(Past([NOTHING_KNOWN]), make_objective()).state == UNKNOWN


@pytest.mark.parametrize(("bad", "state"), [(14, OK), (14.0000001, FIRING), (15, FIRING)])
def test_a_burn_rate_just_at_the_threshold_does_not_fire(bad: float, state: str) -> None:
    """At 14 times 0.1 %, 14 of 1,000 events a minute may be bad.

    In binary fractions that is a little more than 14.
    """
    past = Past([MinuteEvents(bad, 1000)] * 60)

    assert evaluate_past(past, make_objective(PAGE)).rules[0].state == state


@pytest.mark.parametrize("threshold", ["14.4", "0.1", "2.3", "7.7"])
def test_no_threshold_fires_at_exactly_its_rate(threshold: str) -> None:
    bad = float(Decimal(threshold) * 100)
    past = Past([MinuteEvents(bad, 1_000_000)] * 60)

    one = make_objective(rule("1h", "5m", threshold), target="0.9999")
    more = Past([MinuteEvents(bad + 1, 1_000_000)] * 60)

    assert evaluate_past(past, one).rules[0].state == OK
    assert evaluate_past(more, one).rules[0].state == FIRING


def test_what_is_excluded_does_not_count_and_is_not_covered() -> None:
    past = Past([*steady_traffic(90), *steady_traffic(10, "0.5"), *steady_traffic(20)])
    all_of_it = make_objective(PAGE, rule("6h", "30m", "6"))
    without = make_objective(*all_of_it.rules, excluded=[(89, 99)])

    assert evaluate_past(past, all_of_it, at=100).burn_rates["1h"] == pytest.approx(83.5, abs=0.05)
    evaluation = evaluate_past(past, without, at=100)
    assert evaluation.burn_rates["1h"] == 0.2
    assert evaluation.coverage["1h"] == round(50 / 60, 6)
    assert evaluation.burn_rates["5m"] is None


def test_spans_that_overlap_or_touch_are_excluded_once() -> None:
    past = Past([*steady_traffic(50), *steady_traffic(10, "0.5")])
    spans = [(52, 55), (49, 53), (55, 59), (57, 58), (40, 40)]

    assert evaluate_past(past, make_objective(PAGE, excluded=spans)) == evaluate_past(
        past, make_objective(PAGE, excluded=[(49, 59)])
    )


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (None, "unknown"),
        (0, "0×"),
        (0.00001, "< 0.01×"),
        (7.934, "7.93×"),
        (99.96, "100×"),
        (999.6, "1,000×"),
        (1000, "1,000×"),
        (123456.7, "123,457×"),
    ],
)
def test_a_burn_rate_is_written_without_an_exponent(rate: float | None, expected: str) -> None:
    assert format_burn_rate(rate) == expected


def test_nothing_but_numbers_and_null_is_told() -> None:
    evaluation = evaluate_past(
        Past([MinuteEvents(1e300, 1e300)] * 60), make_objective(PAGE)
    ).document()

    assert orjson.loads(orjson.dumps(evaluation)) == evaluation
    assert evaluation["rules"] == [
        {"long": "1h", "short": "5m", "burn_rate": 14, "severity": "page", "state": "firing"}
    ]


def test_only_the_minutes_that_are_said_to_be_needed_are_looked_up() -> None:
    past = Past(steady_traffic(4000, "0.01"))
    objective = make_objective(
        PAGE, rule("3d", "6h", "1"), days=3, excluded=[(100, 300), (3980, 4100)]
    )

    evaluate_past(past, objective)

    assert past.looked_up <= needed_minutes(objective, past.last)


MINUTES = st.builds(
    lambda total, bad, covered: MinuteEvents(min(bad, total), total, covered),
    st.integers(0, 2000) | st.floats(0, 100),
    st.integers(0, 60) | st.floats(0, 3),
    st.booleans() | st.just(True),
)
SPANS = st.tuples(st.integers(-10, 260), st.integers(0, 40)).map(lambda one: (one[0], sum(one)))


@pytest.mark.slow
@given(
    minutes=st.lists(MINUTES, min_size=1, max_size=250),
    excluded=st.lists(SPANS, max_size=4),
    min_events=st.sampled_from([0, 0, 500]),
    threshold=st.sampled_from(["1", "2.5", "14.4"]),
)
@settings(max_examples=80, deadline=timedelta(seconds=2))
def test_every_window_is_the_sum_of_its_minutes(
    minutes: list[MinuteEvents], excluded: list[tuple[int, int]], min_events: int, threshold: str
) -> None:
    """Compare with the sum of the window's minutes that are not excluded."""
    objective = make_objective(
        rule("2h", "7m", threshold), days=1, min_events=min_events, excluded=excluded
    )
    past = Past(minutes)

    evaluation = evaluate_past(past, objective)

    for name in objective.windows:
        one = expected_document(past, window_minutes(name), excluded, min_events)
        assert evaluation.coverage[name] == round(one["covered"] / window_minutes(name), 6)
        assert evaluation.burn_rates[name] == rounded(one, objective)
    states = [
        expected_document(past, window_minutes(name), excluded, min_events) for name in ("2h", "7m")
    ]
    assert evaluation.rules[0].state == three_valued(states, Fraction(threshold), objective)
    whole = expected_document(past, 1440, excluded, min_events)
    rate = rounded(whole, objective)
    assert evaluation.remaining_ratio == (
        None if rate is None else pytest.approx(1 - rate, abs=1e-6)
    )


def expected_document(
    past: Past, minutes: int, excluded: list[tuple[int, int]], min_events: int
) -> dict[str, Any]:
    good = total = Fraction(0)
    covered = 0
    for minute in range(past.last - minutes + 1, past.last + 1):
        if any(begins < minute <= ends for begins, ends in excluded):
            continue
        now, before = past.values_at(minute), past.values_at(minute - 1)
        good += Fraction(now.good) - Fraction(before.good)
        total += Fraction(now.total) - Fraction(before.total)
        covered += now.covered - before.covered
    enough = covered >= min(minutes, max(5, minutes / 10))
    bad = max(total - good, Fraction(0))
    is_known = total > 0 and total >= min_events and enough
    return {"bad": bad, "total": total, "covered": covered, "is_known": is_known}


def rounded(one: dict[str, Any], objective: Objective) -> float | None:
    if not one["is_known"]:
        return None
    return round(float(one["bad"] / one["total"] / Fraction(objective.budget)), 6)


def three_valued(states: list[dict[str, Any]], threshold: Fraction, objective: Objective) -> str:
    above = [one["bad"] > threshold * Fraction(objective.budget) * one["total"] for one in states]
    if any(one["is_known"] and not high for one, high in zip(states, above, strict=True)):
        return OK
    return FIRING if all(one["is_known"] for one in states) else UNKNOWN
