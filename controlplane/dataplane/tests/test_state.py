"""Lagging answers are recognized, and the database's clock is used."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.dataplane.memory.listeners import CONFIG
from controlplane.dataplane.memory.policies import Policies
from controlplane.dataplane.postgres.database import DatabaseHead
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.served import copy

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


class Clock:
    """A monotonic clock that only tests move."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def served() -> tuple[State, DatabaseHead]:
    """Return a state at version 17, and the head it was read from."""
    state, seventeenth = State(), copy(17, "segment:finance")
    state.install_copy(seventeenth, 0.0)
    state.install_tokens(5, {})
    state.install_known(3, frozenset({"segment:finance"}))
    return state, DatabaseHead(seventeenth.publication, 5, 3, NOW)


def test_the_same_head_and_later_ones_are_not_lagging() -> None:
    state, head = served()
    later = replace(head.publication, version=18, published_at=NOW)

    assert not state.is_lagging(head)
    assert not state.is_lagging(head._replace(publication=later, revision=6, registrations=4))


@pytest.mark.parametrize("field", ["revision", "registrations"])
def test_an_older_number_beside_the_same_version_is_lagging(field: str) -> None:
    state, head = served()

    assert state.is_lagging(head._replace(**{field: getattr(head, field) - 1}))


def test_a_version_given_to_something_else_is_lagging() -> None:
    state, head = served()
    another = replace(head.publication, published_at=NOW + timedelta(seconds=1))

    assert state.is_lagging(head._replace(publication=another))


def test_the_databases_clock_counts_and_the_monotonic_one_carries_it_on() -> None:
    clock = Clock()
    state = State(clock)

    state.set_clock(NOW, asked_at=clock.seconds)
    clock.seconds += 60

    assert state.wall() == NOW + timedelta(seconds=60)


def test_a_slow_round_trip_does_not_set_the_clock_back() -> None:
    clock = Clock()
    state = State(clock)
    state.set_clock(NOW, asked_at=clock.seconds)
    clock.seconds += 10

    state.set_clock(NOW + timedelta(seconds=7), asked_at=clock.seconds - 3)

    assert state.wall() == NOW + timedelta(seconds=10)


def test_the_first_answer_counts_however_slow() -> None:
    clock = Clock()
    state = State(clock)

    state.set_clock(NOW, asked_at=clock.seconds - 2)

    assert abs(state.wall() - NOW) <= timedelta(seconds=1)


def test_policies_and_causes_wake_no_caller_that_waits_for_switches() -> None:
    state, head = served()

    async def waited() -> list[bool]:
        snapshot, config = state.listeners.enter(), state.listeners.enter(CONFIG)
        woken = []
        for change in (
            lambda: state.install_causes(2, ()),
            lambda: state.install_policies(Policies.build(head.publication.epoch, 2, ())),
        ):
            change()
            for one in (snapshot, config):
                began = time.monotonic()
                await one.wait(0.05)
                woken.append(time.monotonic() - began < 0.04)
        return woken

    woken = asyncio.run(waited())

    assert woken == [False, False, False, True]
    assert state.config_changed.is_set()
