"""Notification of the journal and of listeners about the transitions of a circuit breaker."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeVar

from switchgear import journal
from switchgear.patterns.generation import State, StateTransition, WouldOpen

TransitionListener = Callable[[StateTransition], object]
T = TypeVar("T")

EVENTS: Mapping[State, str] = {
    "open": "circuit_breaker_opened",
    "half_open": "circuit_breaker_half_open",
    "closed": "circuit_breaker_closed",
}


class BreakerListeners:
    """The functions to call after changes of one breaker. Added and removed without a lock."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.of_transitions: dict[object, TransitionListener] = {}
        self.of_modes: dict[object, Callable[[], object]] = {}

    def notify_mode(self) -> None:
        """Call the listeners for changes of the forced mode. No lock is held. Never raises."""
        for listener in list(self.of_modes.values()):
            self._call(listener)

    def notify(self, events: deque[StateTransition | WouldOpen]) -> None:
        """Record a breaker's `events` in the journal, and pass its transitions to the listeners.

        Never raises. No lock is held meanwhile.
        """
        while events:
            try:
                each = events.popleft()
            except IndexError:  # Another thread was quicker.
                return
            fields = {"cause": each.cause, "failure_rate": each.failure_rate, "calls": each.calls}
            if isinstance(each, WouldOpen):
                journal.record("circuit_breaker_would_open", self._name, **fields)
                continue
            states = {"from": each.before, "to": each.after}
            journal.record(EVENTS[each.after], self._name, **states, **fields)
            for listener in list(self.of_transitions.values()):
                self._call(listener, each)

    def _call(self, listener: Callable[..., object], *args: object) -> None:
        try:
            listener(*args)
        except Exception:  # A fault of the listener, which must not affect the caller.
            journal.log_error("a listener of breaker %s failed", self._name)


def add_listener(listeners: dict[object, T], listener: T) -> Callable[[], None]:
    """Add `listener` to `listeners`, and return a function that removes it."""
    key = object()
    listeners[key] = listener

    def remove() -> None:
        listeners.pop(key, None)

    return remove
