"""Tells the journal, and whoever watches, what becomes of a breaker."""

from collections import deque
from collections.abc import Callable, Mapping

from switchgear import journal
from switchgear.patterns.terms import State, Transition, WouldOpen

Watcher = Callable[[Transition], object]

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

    def add(self, watcher: Watcher) -> Callable[[], None]:
        """Tell it from now on; returns what ends that."""
        key = object()
        self._all[key] = watcher

        def remove() -> None:
            self._all.pop(key, None)

        return remove

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
                    try:
                        watcher(each)
                    except Exception:  # Somebody else's, and not the caller's business.
                        journal.complain("a watcher of breaker %s failed", self._name)

    def _note(self, each: Transition | WouldOpen) -> None:
        seen = {"cause": each.cause, "failure_rate": each.failure_rate, "calls": each.calls}
        if isinstance(each, WouldOpen):
            journal.note("circuit_breaker_would_open", self._name, **seen)
        else:
            states = {"from": each.before, "to": each.after}
            journal.note(EVENTS[each.after], self._name, **states, **seen)
