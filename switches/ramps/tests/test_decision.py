"""The decision about a ramp, as a table."""

from datetime import UTC, datetime, timedelta

import pytest

from switches.ramps.decision import CurrentStep, GateResult, Next, decide

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
OVER, NOT_OVER = NOW, NOW + SECOND


def decided(state="running", dwell_until=OVER, blind_since=None, verdicts=(), max_hold=HOUR):
    step = CurrentStep(state, dwell_until, max_hold, blind_since)
    return decide(step, [GateResult(f"gate {v}", v) for v in verdicts], NOW)


@pytest.mark.parametrize(
    ("state", "dwell_until", "verdicts", "expected"),
    [
        ("running", NOT_OVER, (), Next.STAY),
        ("running", NOT_OVER, ("pass",), Next.STAY),
        ("running", NOT_OVER, ("no_data", "waiting"), Next.STAY),
        ("running", NOT_OVER, ("pass", "fail"), Next.COMPENSATE),
        ("running", OVER, (), Next.ADVANCE),
        ("running", OVER, ("pass", "pass"), Next.ADVANCE),
        ("running", OVER, ("pass", "no_data"), Next.HOLD),
        ("running", OVER, ("pass", "waiting"), Next.HOLD),
        ("running", OVER, ("no_data", "fail"), Next.COMPENSATE),
        ("holding", OVER, ("pass",), Next.ADVANCE),
        ("holding", OVER, ("no_data",), Next.HOLD),
        ("holding", OVER, ("fail",), Next.COMPENSATE),
        ("paused", OVER, ("pass",), Next.STAY),
        ("paused", OVER, (), Next.STAY),
        ("paused", OVER, ("no_data",), Next.STAY),
        ("paused", NOT_OVER, ("fail",), Next.COMPENSATE),
        ("paused", OVER, ("fail",), Next.COMPENSATE),
    ],
)
def test_next_move(state, dwell_until, verdicts, expected):
    assert decided(state, dwell_until, verdicts=verdicts).next == expected


def test_it_is_blind_from_the_first_look_past_its_dwell():
    assert decided(verdicts=("no_data",)).blind_since == NOW
    assert decided(verdicts=("no_data",), blind_since=NOW - SECOND).blind_since == NOW - SECOND
    assert decided(verdicts=("waiting",), blind_since=NOW - SECOND).blind_since is None


@pytest.mark.parametrize(
    ("blind", "expected"), [(HOUR - SECOND, Next.HOLD), (HOUR, Next.COMPENSATE)]
)
def test_it_is_blind_for_so_long_and_no_longer(blind, expected):
    decision = decided("holding", verdicts=("no_data",), blind_since=NOW - blind)

    assert decision.next == expected
    assert "gate no_data" in decision.why


def test_a_person_is_waited_for_longer_than_data():
    assert decided("holding", verdicts=("waiting",), blind_since=NOW - 2 * HOUR).next == Next.HOLD


def test_a_paused_one_is_not_blind_for_too_long():
    assert decided("paused", verdicts=("no_data",), blind_since=NOW - 9 * HOUR).next == Next.STAY


def test_why_names_every_gate_and_only_those():
    why = decide(
        CurrentStep("running", OVER, HOUR),
        [
            GateResult("smoke: 12 errors", "fail"),
            GateResult("slo", "pass"),
            GateResult("oracle", "fail"),
        ],
        NOW,
    ).why

    assert why == "A gate failed: smoke: 12 errors; oracle."
