"""The modes that an operator forces on a breaker."""

import pytest

from switchgear import journal
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.generation import MODES, StateTransition
from switchgear.patterns.parameters import BreakerParameters
from switchgear.refusals import CircuitOpen
from tests.patterns.clocks import Clock


def watched(**parameters: object) -> tuple[Breaker, list[StateTransition]]:
    made = BreakerParameters(failure_count=1, **parameters)  # type: ignore[arg-type]
    breaker = Breaker("d", made, clock=Clock())
    transitions: list[StateTransition] = []
    breaker.watch(transitions.append)
    return breaker, transitions


def fail(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.fail(breaker.admit(), ValueError("no"))


def changes(transitions: list[StateTransition]) -> list[tuple[str, str, str]]:
    return [(each.before, each.after, each.cause) for each in transitions]


def test_forced_open_rejects_every_call_without_an_end() -> None:
    breaker, transitions = watched()
    breaker.force("forced_open")

    for _ in range(3):
        with pytest.raises(CircuitOpen) as caught:
            breaker.admit()
        assert caught.value.retry_after is None
    assert (breaker.state, breaker.mode) == ("open", "forced_open")
    assert breaker.look().open_until is None
    assert breaker.counters.counted()["rejected"] == 3
    breaker.unforce()
    breaker.admit()
    assert changes(transitions) == [
        ("closed", "open", "override forced_open"),
        ("open", "closed", "override ended"),
    ]


def test_forced_closed_admits_and_records() -> None:
    breaker, transitions = watched()
    fail(breaker)
    breaker.force("forced_closed")
    fail(breaker, 30)

    status = breaker.look()
    assert (status.state, status.mode, status.calls, status.failure_rate) == (
        "closed",
        "forced_closed",
        30,
        1.0,
    )
    assert breaker.counters.counted()["failure"] == 31
    breaker.unforce()
    assert breaker.look().calls == 0
    assert changes(transitions)[1:] == [("open", "closed", "override forced_closed")]


def test_disabled_breaker_admits_calls_and_records_none() -> None:
    breaker, _ = watched(slow_call_seconds=1)
    breaker.force("disabled")
    fail(breaker, 30)
    breaker(lambda: 5)()
    breaker.succeed(breaker.admit(), 5.0)

    status = breaker.look()
    assert (status.state, status.mode, status.calls) == ("closed", "disabled", 0)
    assert set(breaker.counters.counted().values()) == {0}


def test_a_call_that_began_disabled_is_not_counted_when_it_ends_later() -> None:
    breaker, _ = watched()
    breaker.force("disabled")
    permit = breaker.admit()
    breaker.unforce()
    breaker.fail(permit, ValueError("no"))

    assert breaker.state == "closed"
    assert breaker.counters.counted()["failure"] == 0


def test_metrics_only_says_once_per_override_that_it_would_have_opened() -> None:
    entries: list[journal.Entry] = []
    remove = journal.add_hook(entries.append)
    breaker, transitions = watched()
    for _ in range(2):
        breaker.force("metrics_only")
        assert not breaker.look().would_open
        fail(breaker, 3)
        breaker.force("metrics_only")
        fail(breaker, 3)
        status = breaker.look()
        assert (status.state, status.would_open, status.calls) == ("closed", True, 6)
        breaker.unforce()
    remove()

    assert [entry.name for entry in entries] == ["circuit_breaker_would_open"] * 2
    assert entries[0].fields["cause"] == "failure_count 1 >= 1"
    assert transitions == []
    assert not breaker.look().would_open


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "normal"])
def test_leaving_a_mode_closes_the_breaker_and_drops_its_calls(mode: str) -> None:
    breaker, _ = watched()
    fail(breaker)
    breaker.force("metrics_only")
    inside = breaker.admit()
    breaker.force(mode)  # type: ignore[arg-type]
    breaker.unforce()
    breaker.fail(inside, ValueError("no"))

    status = breaker.look()
    assert (status.state, status.mode, status.calls) == ("closed", "normal", 0)


def test_forcing_the_same_mode_keeps_the_window() -> None:
    breaker, transitions = watched()
    breaker.force("forced_closed")
    fail(breaker, 7)
    breaker.force("forced_closed")

    assert breaker.look().calls == 7
    assert transitions == []


def test_a_reset_closes_it_and_ends_its_mode() -> None:
    breaker, transitions = watched()
    fail(breaker)
    breaker.reset()
    breaker.force("forced_open")
    breaker.reset()
    breaker.reset()

    assert (breaker.state, breaker.mode) == ("closed", "normal")
    assert [cause for _, _, cause in changes(transitions)][1::2] == ["reset", "reset"]
    assert len(transitions) == 4


def test_after_a_reset_it_opens_for_as_long_as_the_first_time() -> None:
    clock = Clock()
    parameters = BreakerParameters(
        failure_count=1, open_seconds=1, open_multiplier=10, open_jitter=0
    )
    breaker = Breaker("d", parameters, clock=clock)
    for _ in range(3):
        fail(breaker)
        clock.goes(1)
        fail(breaker, 5)  # As many probes, all of them bad: ten seconds now.
        breaker.reset()
        fail(breaker)
        assert breaker.look().open_until == clock.now + 1
        breaker.reset()


def test_a_mode_that_there_is_not_is_an_error() -> None:
    breaker, _ = watched()

    with pytest.raises(ValueError, match="forced_open, forced_closed"):
        breaker.force("half_open")  # type: ignore[arg-type]
