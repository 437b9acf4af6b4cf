"""Notifications about the transitions of a circuit breaker, to the journal and to listeners."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeVar

from switchgear import journal
from switchgear.patterns.generation import State, StateTransition, WouldOpen

TransitionListener = Callable[[StateTransition], object]
ModeListener = Callable[[], object]
T = TypeVar("T")

EVENTS: Mapping[State, str] = {
    "open": "circuit_breaker_opened",
    "half_open": "circuit_breaker_half_open",
    "closed": "circuit_breaker_closed",
}


class BreakerListeners:
    """The listeners of one breaker. Each is added or removed in one atomic step, without a lock."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._transition_listeners: dict[object, TransitionListener] = {}
        self._mode_listeners: dict[object, ModeListener] = {}

    def add(self, listener: TransitionListener) -> Callable[[], None]:
        """Call `listener` with each transition from now on; return a function that removes it."""
        return _register(self._transition_listeners, listener)

    def add_mode_listener(self, listener: ModeListener) -> Callable[[], None]:
        """Call `listener` after each change of the mode; return a function that removes it."""
        return _register(self._mode_listeners, listener)

    def after_fork(self) -> None:
        """Drop the mode listeners: they belong to calls that wait in the parent."""
        self._mode_listeners = {}

    def notify_mode(self) -> None:
        """Call the mode listeners, without holding a lock. Never raises."""
        for listener in list(self._mode_listeners.values()):
            self._call(listener)

    def notify(self, events: deque[StateTransition | WouldOpen]) -> None:
        """Record `events` in the journal, and pass transitions to the listeners. Never raises.

        No lock is held meanwhile.
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
            for listener in list(self._transition_listeners.values()):
                self._call(listener, each)

    def _call(self, listener: Callable[..., object], *args: object) -> None:
        try:
            listener(*args)
        except Exception:  # A fault of the listener, which must not affect the caller.
            journal.log_error("a watcher of breaker %s failed", self._name)


def _register(listeners: dict[object, T], listener: T) -> Callable[[], None]:
    key = object()
    listeners[key] = listener

    def remove() -> None:
        listeners.pop(key, None)

    return remove
