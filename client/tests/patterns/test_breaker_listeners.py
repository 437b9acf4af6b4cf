"""Listeners are notified of forced modes, and can cheaply read the current refusal."""

import logging
import threading

import pytest

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.generation import MODES, Mode
from switchgear.patterns.parameters import BreakerParameters


@pytest.mark.parametrize("mode", MODES)
def test_breaker_refuses_waiting_calls_while_forced_open_alone(mode: Mode) -> None:
    breaker = Breaker("d")

    breaker.force(mode)

    assert (breaker.refusal() is not None) is (mode == "forced_open")


def test_breaker_that_opened_by_itself_is_not_forced() -> None:
    breaker = Breaker("d", BreakerParameters(failure_count=1))

    breaker.fail(breaker.admit(), None)

    assert breaker.state == "open"
    assert breaker.refusal() is None


def test_mode_change_notifies_listeners_in_its_thread() -> None:
    breaker = Breaker("d")
    notifications: list[tuple[str, int]] = []
    breaker.subscribe(lambda: notifications.append((breaker.mode, threading.get_ident())))

    breaker.force("forced_open")
    breaker.force("metrics_only")
    breaker.unforce()
    breaker.force("disabled")
    breaker.reset()

    here = threading.get_ident()
    modes = ["forced_open", "metrics_only", "normal", "disabled", "normal"]
    assert notifications == [(mode, here) for mode in modes]


def test_unchanged_mode_does_not_notify_listeners() -> None:
    breaker = Breaker("d", BreakerParameters(failure_count=1))
    notifications: list[None] = []
    breaker.subscribe(lambda: notifications.append(None))

    breaker.unforce()
    breaker.reset()
    breaker.fail(breaker.admit(), None)
    breaker.configure(BreakerParameters())

    assert notifications == []


def test_same_mode_again_notifies_once() -> None:
    breaker = Breaker("d")
    notifications: list[None] = []
    breaker.subscribe(lambda: notifications.append(None))

    breaker.force("forced_open")
    breaker.force("forced_open")

    assert notifications == [None]


def test_no_lock_is_held_during_mode_notifications() -> None:
    breaker = Breaker("d")
    states: list[str] = []

    def look_from_another_thread() -> None:
        thread = threading.Thread(target=lambda: states.append(breaker.state))
        thread.start()
        thread.join(10)

    breaker.subscribe(look_from_another_thread)

    breaker.force("forced_open")

    assert states == ["open"]


def test_failing_mode_listener_is_logged_and_the_others_are_notified(
    caplog: pytest.LogCaptureFixture,
) -> None:
    breaker = Breaker("d")
    notifications: list[str] = []

    def broken() -> None:
        raise RuntimeError("a defect")

    breaker.subscribe(broken)
    breaker.subscribe(lambda: notifications.append(breaker.mode))
    with caplog.at_level(logging.ERROR, "switchgear"):
        breaker.force("forced_open")

    assert notifications == ["forced_open"]
    assert "a listener of breaker d failed" in caplog.text


def test_removed_listener_is_not_notified() -> None:
    breaker = Breaker("d")
    notifications: list[str] = []
    remove = breaker.subscribe(lambda: notifications.append(breaker.mode))
    breaker.force("forced_open")

    remove()
    remove()
    breaker.unforce()

    assert notifications == ["forced_open"]


def test_listener_may_change_the_mode_itself() -> None:
    breaker = Breaker("d")
    notifications: list[str] = []

    def end_at_once() -> None:
        notifications.append(breaker.mode)
        breaker.unforce()

    breaker.subscribe(end_at_once)

    breaker.force("forced_open")

    assert notifications == ["forced_open", "normal"]
