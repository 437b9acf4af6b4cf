"""Faults are put in, strike the calls they are meant for, and are over in time."""

from typing import Any

import pytest

from demo import faults
from demo.faults import WELL, Fault, Faults, InjectedFailure, WrongFault
from switchgear.testing import FakeClock


def make_faults(clock: FakeClock | None = None, chance: float = 0.5) -> tuple[Faults, list[float]]:
    slept: list[float] = []
    return Faults((clock or FakeClock()).monotonic, lambda: chance, slept.append), slept


def test_nothing_put_in_breaks_nothing() -> None:
    broken, slept = make_faults(chance=0.0)

    broken.strike()

    assert slept == []
    assert not broken.garbles()


@pytest.mark.parametrize(("chance", "breaks"), [(0.29, True), (0.3, False)])
def test_a_share_of_errors_breaks_that_share(chance: float, breaks: bool) -> None:
    broken, _ = make_faults(chance=chance)
    broken.inject(Fault(errors=0.3))

    struck = False
    try:
        broken.strike()
    except InjectedFailure:
        struck = True

    assert struck is breaks


def test_a_delay_is_waited_for_in_seconds() -> None:
    broken, slept = make_faults()
    broken.inject(Fault(delay_ms=800))

    broken.strike()

    assert slept == [0.8]


def test_a_fault_of_an_experiment_spares_all_other_calls() -> None:
    broken, slept = make_faults()
    broken.inject(Fault(errors=1.0, delay_ms=100, only="experiment:x"))

    broken.strike()
    broken.strike("experiment:y")

    assert slept == []
    with pytest.raises(InjectedFailure):
        broken.strike("experiment:x")


def test_a_fault_is_over_after_its_seconds() -> None:
    clock = FakeClock()
    broken, _ = make_faults(clock)
    broken.inject(Fault(errors=1.0, seconds=30))

    clock.advance(29)
    during = broken.present
    clock.advance(1)

    assert during.errors == 1.0
    assert broken.present == WELL


def test_what_is_asked_for_is_read() -> None:
    fault = faults.parse_fault({"errors": 1, "delay_ms": 800, "down": True, "seconds": 5})

    assert fault == Fault(errors=1, delay_ms=800, down=True, seconds=5)


@pytest.mark.parametrize(
    "body",
    [
        {"error": 0.3},
        {"errors": 1.5},
        {"errors": "0.3"},
        {"errors": True},
        {"errors": float("nan")},
        {"garbled": -0.1},
        {"overloaded": 1.1},
        {"delay_ms": 1e4},
        {"delay_ms": 10_001},
        {"down": 1},
        {"only": None},
        {"seconds": 0},
        {"seconds": 3601},
    ],
)
def test_what_can_be_no_fault_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(WrongFault):
        faults.parse_fault(body)
