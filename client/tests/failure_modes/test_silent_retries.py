"""Retries that nobody sees hide a failing dependency, until users wait for it."""

from collections.abc import Iterator

import pytest

from switchgear import Deadline, DeadlineExceeded, Retry, RetryParameters, journal
from switchgear.journal import Entry
from switchgear.patterns.counters import Counters
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.testing import FakeClock


class Flaky:
    """Fails twice of three times, and takes a second for it."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        self.clock.advance(1.0)
        if self.calls % 3:
            raise ConnectionError("reset by peer")
        return "an answer"


@pytest.fixture
def heard() -> Iterator[list[Entry]]:
    entries: list[Entry] = []
    end = journal.add_hook(entries.append)
    yield entries
    end()


def by_hand(call: Flaky, attempts: int = 3) -> str:
    """Retry as is often done."""
    for _ in range(attempts - 1):
        try:
            return call()
        except ConnectionError:
            continue
    return call()


def test_retries_by_hand_look_like_slow_successes(heard: list[Entry]) -> None:
    clock = FakeClock()
    flaky = Flaky(clock)
    began = clock.monotonic()

    answers = [by_hand(flaky) for _ in range(10)]

    assert answers == ["an answer"] * 10
    assert clock.monotonic() - began == pytest.approx(30.0)
    assert heard == []


def test_each_retry_is_counted_and_told(heard: list[Entry]) -> None:
    clock, counters = FakeClock(), Counters()
    retry = Retry(
        "core->oracle",
        counters=counters,
        clock=clock.monotonic,
        sleep=clock.advance,
        rng=lambda: 0.5,
    )
    flaky = retry(Flaky(clock).__call__)

    answers = [flaky() for _ in range(10)]

    assert answers == ["an answer"] * 10
    assert counters.counted()["retry"] == 20
    retries = [entry for entry in heard if entry.name == "call_retried"]
    assert len(retries) == 20
    assert {entry.about for entry in retries} == {"core->oracle"}


def test_a_spent_budget_is_told_by_itself(heard: list[Entry]) -> None:
    clock = FakeClock()
    retry = Retry(
        "core->oracle",
        budget=RetryBudget(0.0, 0.1, clock=clock.monotonic),
        clock=clock.monotonic,
        sleep=clock.advance,
    )

    @retry
    def fails() -> None:
        raise ConnectionError("reset by peer")

    for _ in range(5):
        with pytest.raises(ConnectionError):
            fails()

    assert "retry_budget_exhausted" in {entry.name for entry in heard}


def test_a_timeout_that_retries_brought_about_says_so() -> None:
    clock = FakeClock()
    retry = Retry(
        "core->oracle",
        RetryParameters(base_seconds=0.0),
        clock=clock.monotonic,
        sleep=clock.advance,
    )

    @Deadline(2.5, clock=clock.monotonic)
    @retry
    def slow() -> None:
        clock.advance(1.5)
        raise TimeoutError("no answer")

    with pytest.raises(DeadlineExceeded, match="after 2 attempts") as raised:
        slow()

    assert raised.value.caused_by_retrying
