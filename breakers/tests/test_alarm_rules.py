"""When alarms begin and end, by figures alone."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakers.alarms import rules
from breakers.alarms.rules import (
    CLEAN,
    CONCURRENCY,
    FALLBACKS,
    OPEN,
    RETRIES,
    TIMEOUTS,
    Reading,
    Standing,
    moves,
)
from breakers.tests.fleet import NOW, ORACLE, SECOND


@pytest.mark.parametrize(
    ("rule", "allowed", "severity"),
    [
        (TIMEOUTS, 0.01, "warning"),
        (RETRIES, 0.10, "info"),
        (FALLBACKS, 0.05, "warning"),
        (CONCURRENCY, 0.80, "info"),
        (OPEN, 0, "warning"),
    ],
)
def test_a_limit_is_allowed_and_more_is_not(rule, allowed, severity):
    assert rule.severity == severity
    assert not Reading(rule, ORACLE, allowed, 1000).is_beyond
    assert Reading(rule, ORACLE, allowed + 0.001, 1000).is_beyond


def test_of_nineteen_calls_nothing_is_said_and_of_twenty_it_is():
    assert not Reading(TIMEOUTS, ORACLE, 1.0, 19).is_beyond
    assert Reading(TIMEOUTS, ORACLE, 1.0, 20).is_beyond


def test_a_reading_says_it_all_in_a_sentence():
    said = Reading(TIMEOUTS, ORACLE, 0.0421, 1240).said

    assert said == (
        "4.2 % of the calls of core->oracle timed out in 5 minutes (1 % at most; 1,240 calls)"
    )


def test_it_ends_after_two_clean_minutes_and_not_before():
    standing = [Standing(1, (OPEN.name, ORACLE), NOW)]

    before = moves([], standing, NOW + CLEAN - timedelta(microseconds=1))
    then = moves([], standing, NOW + CLEAN)

    assert (before.end, then.end) == ((), (1,))


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60))
def test_however_figures_come_one_alarm_is_open_at_a_time_and_none_ends_early(looks):
    """The model: beyond since the last two minutes or not."""
    now, seen_at, is_open = NOW, None, False
    for seconds, beyond in looks:
        now += seconds * 10 * SECOND
        standing = [Standing(1, (OPEN.name, ORACLE), seen_at)] if is_open else []

        found = moves([Reading(OPEN, ORACLE, int(beyond), 8)], standing, now)

        assert len(found.begin) == int(beyond and not is_open)
        assert bool(found.go_on) == (beyond and is_open)
        assert bool(found.end) == (is_open and not beyond and now - seen_at >= CLEAN)
        seen_at = now if beyond else seen_at
        is_open = beyond or (is_open and not found.end)


def test_every_rule_has_a_place_in_the_table():
    assert set(rules.ALL) == {
        "breaker_open",
        "timeout_rate",
        "retry_rate",
        "fallback_rate",
        "concurrency",
    }
