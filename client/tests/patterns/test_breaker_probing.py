"""Open and half-open states, and their reports."""

import logging

import pytest

from switchgear import journal
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.breaker_rules import draw_open_seconds
from switchgear.patterns.generation import IllegalTransition, StateTransition
from switchgear.patterns.parameters import BreakerParameters
from switchgear.patterns.state_machine import BreakerStateMachine
from switchgear.refusals import CircuitOpen
from tests.patterns.clocks import Clock

DRAWN = 0.5


def watched(clock: Clock, **parameters: object) -> tuple[Breaker, list[StateTransition]]:
    made = BreakerParameters(**{"open_jitter": 0, **parameters})  # type: ignore[arg-type]
    breaker = Breaker("d", made, clock=clock, rng=lambda: DRAWN)
    transitions: list[StateTransition] = []
    breaker.watch(transitions.append)
    return breaker, transitions


def fail(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.fail(breaker.admit(), None)


def succeed(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.succeed(breaker.admit())


@pytest.mark.parametrize(
    ("parameters", "outcomes", "cause"),
    [
        ({"minimum_calls": 5}, "ssfff", "failure_rate 0.60 >= 0.50"),
        ({"minimum_calls": 5}, "fffss", "failure_rate 0.60 >= 0.50"),
        ({"failure_count": 3}, "fff", "failure_count 3 >= 3"),
        (
            {"minimum_calls": 5, "consecutive_failures": 2, "failure_rate": 1},
            "sssff",
            "consecutive_failures 2 >= 2",
        ),
        (
            {"minimum_calls": 2, "slow_call_seconds": 1, "slow_call_rate": 1},
            "ll",
            "slow_call_rate 1.00 >= 1.00",
        ),
    ],
)
def test_it_opens_with_the_last_outcome_needed_and_says_why(
    parameters: dict[str, object], outcomes: str, cause: str
) -> None:
    breaker, transitions = watched(Clock(), **parameters)

    for outcome in outcomes:
        assert breaker.state == "closed"
        if outcome == "f":
            fail(breaker)
        else:
            breaker.succeed(breaker.admit(), 2.0 if outcome == "l" else 0.0)

    assert [(each.n, each.before, each.after, each.cause) for each in transitions] == [
        (1, "closed", "open", cause)
    ]


@pytest.mark.parametrize(
    ("parameters", "failures"),
    [
        ({"consecutive_failures": 5}, 20),
        ({"consecutive_failures": 5, "minimum_calls": 5}, 5),
        ({"window_type": "time", "failure_count": 5}, 5),
    ],
)
def test_failures_in_a_row_open_it_as_the_docs_recommend(
    parameters: dict[str, object], failures: int
) -> None:
    breaker, _ = watched(Clock(), **parameters)
    fail(breaker, failures - 1)
    assert breaker.state == "closed"

    fail(breaker)

    assert breaker.state == "open"


def test_a_success_ends_a_row_of_failures() -> None:
    breaker, _ = watched(Clock(), minimum_calls=1, consecutive_failures=3, failure_rate=1)
    succeed(breaker, 3)

    for _ in range(5):
        fail(breaker, 2)
        succeed(breaker)

    assert breaker.state == "closed"


def test_a_slow_success_ends_a_row_of_failures_as_well() -> None:
    breaker, _ = watched(
        Clock(), minimum_calls=1, consecutive_failures=3, failure_rate=1, slow_call_seconds=1
    )
    succeed(breaker, 3)
    fail(breaker, 2)
    breaker.succeed(breaker.admit(), 5.0)
    fail(breaker)

    assert breaker.state == "closed"


def test_transitions_of_a_full_cycle_have_their_causes() -> None:
    clock = Clock(100.0)
    breaker, transitions = watched(clock, failure_count=1, open_seconds=10, half_open_calls=4)
    fail(breaker)
    clock.goes(10)
    succeed(breaker, 3)
    assert breaker.state == "half_open"
    fail(breaker)

    assert [(each.at, each.after, each.cause) for each in transitions] == [
        (100.0, "open", "failure_count 1 >= 1"),
        (110.0, "half_open", "open_seconds 10.0 over"),
        (110.0, "closed", "probes: failure_rate 0.25 < 0.50"),
    ]


def test_a_reopened_breaker_has_the_failure_rate_of_its_probes() -> None:
    clock = Clock()
    breaker, transitions = watched(
        clock, minimum_calls=10, consecutive_failures=10, open_seconds=10, half_open_calls=3
    )
    fail(breaker, 10)
    clock.goes(10)
    succeed(breaker)
    fail(breaker, 2)

    assert breaker.state == "open"
    assert (transitions[-1].failure_rate, transitions[-1].calls) == (pytest.approx(2 / 3), 3)
    assert breaker.look().failure_rate == pytest.approx(2 / 3)


def test_it_stays_open_longer_each_time_it_opens_again_until_it_closes() -> None:
    clock = Clock()
    breaker, _ = watched(
        clock, failure_count=1, open_seconds=10, open_multiplier=2, open_max_seconds=50,
        half_open_calls=1,
    )  # fmt: skip
    lengths = []
    for _ in range(5):
        fail(breaker)
        until = breaker.look().open_until
        assert until is not None
        lengths.append(until - clock.now)
        clock.goes(lengths[-1])
    succeed(breaker)
    fail(breaker)

    assert lengths == [10, 20, 40, 50, 50]
    assert breaker.look().open_until == clock.now + 10


@pytest.mark.parametrize("noticed_after", [0.0, 7.0])
def test_a_probe_that_hangs_opens_it_again_at_its_deadline_without_growing(
    noticed_after: float,
) -> None:
    clock = Clock(0.0)
    breaker, transitions = watched(
        clock, failure_count=1, open_seconds=10, open_multiplier=3, half_open_max_seconds=5
    )
    fail(breaker)
    clock.goes(10)
    hung = breaker.admit()
    clock.goes(5 + noticed_after)

    with pytest.raises(CircuitOpen) as caught:
        breaker.admit()
    assert caught.value.retry_after == 10 - noticed_after
    breaker.succeed(hung)

    assert transitions[-1].at == 15.0
    assert transitions[-1].cause == "half_open_max_seconds 5.0 over"
    assert breaker.look().open_until == 25.0


def test_a_look_notices_a_half_open_that_took_too_long() -> None:
    clock = Clock()
    breaker, transitions = watched(clock, failure_count=1, open_seconds=1, half_open_max_seconds=5)
    fail(breaker)
    clock.goes(1)
    hung = breaker.admit()
    clock.goes(5)

    assert breaker.look().state == "open"
    assert len(transitions) == 3
    breaker.release(hung)


def test_all_probes_in_flight_reject_without_retry_after() -> None:
    clock = Clock()
    breaker, _ = watched(clock, failure_count=1, open_seconds=1, half_open_concurrent=2)
    fail(breaker)
    clock.goes(1)
    in_flight = [breaker.admit(), breaker.admit()]

    with pytest.raises(CircuitOpen) as caught:
        breaker.admit()
    assert caught.value.retry_after == 0.0
    assert len(in_flight) == 2


def test_one_probe_settled_twice_counts_once() -> None:
    clock = Clock()
    breaker, _ = watched(clock, failure_count=1, open_seconds=1, half_open_calls=2)
    fail(breaker)
    clock.goes(1)
    probe = breaker.admit()
    breaker.succeed(probe)
    breaker.succeed(probe)
    breaker.release(probe)

    assert breaker.state == "half_open"
    succeed(breaker)
    assert breaker.state == "closed"


def test_slow_probes_open_it_again() -> None:
    clock = Clock()
    breaker, transitions = watched(
        clock, failure_count=1, open_seconds=1, half_open_calls=1, slow_call_seconds=1
    )
    fail(breaker)
    clock.goes(1)
    breaker.succeed(breaker.admit(), 1.5)

    assert transitions[-1].after == "open"
    assert transitions[-1].cause == "probes: slow_call_rate 1.00 >= 1.00"


@pytest.mark.parametrize(
    ("reopened", "drawn", "seconds"),
    [(0, 0.0, 24.0), (0, 1.0, 36.0), (2, 0.5, 67.5), (9, 0.0, 240.0), (9, 1.0, 300.0),
     (100_000, 0.5, 270.0)],
)  # fmt: skip
def test_how_long_it_stays_open_is_spread_also_at_the_cap(
    reopened: int, drawn: float, seconds: float
) -> None:
    assert draw_open_seconds(BreakerParameters(), reopened, drawn) == pytest.approx(seconds)


def test_transitions_are_noted_in_the_journal(caplog: pytest.LogCaptureFixture) -> None:
    entries: list[journal.Entry] = []
    remove = journal.add_hook(entries.append)
    clock = Clock()
    breaker, _ = watched(clock, failure_count=1, open_seconds=1, half_open_calls=1)
    with caplog.at_level(logging.DEBUG, "switchgear"):
        fail(breaker)
        with pytest.raises(CircuitOpen):
            breaker.admit()
        clock.goes(1)
        succeed(breaker)
    remove()

    assert [entry.name for entry in entries] == [
        "circuit_breaker_opened",
        "call_rejected",
        "circuit_breaker_half_open",
        "circuit_breaker_closed",
    ]
    assert {entry.about for entry in entries} == {"d"}
    opened = entries[0].fields
    assert (opened["from"], opened["to"], opened["calls"]) == ("closed", "open", 1)
    assert opened["cause"] == "failure_count 1 >= 1"


def test_failing_listener_is_logged_and_the_others_are_notified(
    caplog: pytest.LogCaptureFixture,
) -> None:
    breaker, transitions = watched(Clock(), failure_count=1)
    later: list[StateTransition] = []

    def broken(_: StateTransition) -> None:
        raise RuntimeError("a defect")

    breaker.watch(broken)
    remove = breaker.watch(later.append)
    with caplog.at_level(logging.ERROR, "switchgear"):
        fail(breaker)
    remove()
    breaker.reset()

    assert "a listener of breaker d failed" in caplog.text
    assert [each.after for each in transitions] == ["open", "closed"]
    assert [each.after for each in later] == ["open"]


def test_no_state_goes_where_the_table_does_not_say() -> None:
    machine = BreakerStateMachine(BreakerParameters(), Clock(), lambda: 0.0)

    with pytest.raises(IllegalTransition, match="closed to half_open"):
        machine.transition("half_open", 0.0, "a defect")
