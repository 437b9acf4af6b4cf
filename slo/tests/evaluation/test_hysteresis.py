"""Hysteresis of alerts, as a table of evaluations a minute apart."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slo.arithmetic.hysteresis import AlertChanges, FiringRule, OpenAlert, plan_changes

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RULE = FiringRule("1h/5m>14 page", "core", "core", "critical", "page", "It burns", "/slos/core/")


def plan(state: str, firing_at: datetime | None, at: datetime = NOON) -> AlertChanges:
    open_alerts = [] if firing_at is None else [OpenAlert(7, RULE.key, firing_at)]
    return plan_changes(
        [RULE] if state == "F" else [],
        {RULE.key} if state == "?" else set(),
        open_alerts,
        at=at,
        before=at - MINUTE,
    )


def run(states: str) -> str:
    """Return the alert after each evaluation: `O` open, `.` none."""
    firing_at: datetime | None = None
    history = ""
    for place, state in enumerate(states):
        at = NOON + place * MINUTE
        changes = plan(state, firing_at, at)
        if changes.opened or changes.continued:
            firing_at = at
        firing_at = changes.postponed.get(7, firing_at) if firing_at else None
        if changes.resolved:
            firing_at = None
        history += "O" if firing_at else "."
    return history


@pytest.mark.parametrize(
    ("states", "history"),
    [
        ("okF".replace("ok", "-"), ".O"),
        ("F-----", "OO...."),
        ("F-F---", "OOOO.."),
        ("F??????", "OOOOOOO"),
        ("F?-?-?", "OOOO.."),
        ("F-?-", "OOO."),
        ("???", "..."),
        ("?F?--", ".OOO."),
        ("F--F--", "OO.OO."),
    ],
)
def test_it_opens_at_once_and_ends_after_two_known_minutes(states: str, history: str) -> None:
    assert run(states) == history


def test_a_rule_that_fires_on_begins_nothing_anew() -> None:
    changes = plan("F", NOON - MINUTE)

    assert not changes.opened
    assert changes.continued == {7: RULE}


def test_what_is_ahead_since_the_clock_was_set_back_ends_all_the_same() -> None:
    ahead = NOON + timedelta(hours=1)

    changes = plan("-", ahead)

    assert changes.postponed == {7: NOON}
    assert plan("-", NOON, NOON + 2 * MINUTE).resolved == (7,)


@given(st.text("F-?", max_size=40))
def test_an_alert_is_open_while_the_last_known_states_are_not_two_quiet_ones(states: str) -> None:
    expected = ""
    is_open, quiet = False, 0
    for state in states:
        if state == "F":
            is_open, quiet = True, 0
        elif state == "-":
            quiet += 1
            is_open = is_open and quiet < 2
        expected += "O" if is_open else "."

    assert run(states) == expected
