"""Tells the journal, and whoever watches, what becomes of a breaker."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeVar

from switchgear import journal
from switchgear.patterns.generation import State, Transition, WouldOpen

Watcher = Callable[[Transition], object]
ModeListener = Callable[[], object]
T = TypeVar("T")

EVENTS: Mapping[State, str] = {
    "open": "circuit_breaker_opened",
    "half_open": "circuit_breaker_half_open",
    "closed": "circuit_breaker_closed",
}


class Watchers:
    """Those of the breaker of that name. Each change of them is one step, so it takes no lock."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._all: dict[object, Watcher] = {}
        self._of_mode: dict[object, ModeListener] = {}

    def add(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with each transition from now on; return a function that ends that."""
        return _added(self._all, watcher)

    def add_mode(self, listener: ModeListener) -> Callable[[], None]:
        """Call `listener` after each change of the mode; return a function that ends that."""
        return _added(self._of_mode, listener)

    def after_fork(self) -> None:
        """Forget in a child the calls that wait in the parent."""
        self._of_mode = {}

    def tell_mode(self) -> None:
        """Notify of a change of the mode. Holds no lock. Never raises."""
        for listener in list(self._of_mode.values()):
            self._call(listener)

    def tell(self, news: deque[Transition | WouldOpen]) -> None:
        """All that is in `news`. Under no lock: a hook may do what it likes. Never raises."""
        while news:
            try:
                each = news.popleft()
            except IndexError:  # Another thread was quicker.
                return
            self._note(each)
            if isinstance(each, Transition):
                for watcher in list(self._all.values()):
                    self._call(watcher, each)

    def _call(self, watcher: Callable[..., object], *args: object) -> None:
        try:
            watcher(*args)
        except Exception:  # A fault of the listener, which must not affect the caller.
            journal.complain("a watcher of breaker %s failed", self._name)

    def _note(self, each: Transition | WouldOpen) -> None:
        seen = {"cause": each.cause, "failure_rate": each.failure_rate, "calls": each.calls}
        if isinstance(each, WouldOpen):
            journal.note("circuit_breaker_would_open", self._name, **seen)
        else:
            states = {"from": each.before, "to": each.after}
            journal.note(EVENTS[each.after], self._name, **states, **seen)


def _added(watchers: dict[object, T], watcher: T) -> Callable[[], None]:
    key = object()
    watchers[key] = watcher

    def remove() -> None:
        watchers.pop(key, None)

    return remove
