"""How often each switch was asked for, in all of this process's life, in bounded memory."""

import itertools
import threading
from collections.abc import Callable, Iterable

from switchgear.evaluation.decisions import Decision, Question

MAX_SWITCHES = 1000
"""As many as a report may have."""


class Tally:
    """How often something was decided. `tick` counts one call: it is atomic and takes no lock."""

    __slots__ = ("_looks", "_taken", "decision", "tick")

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.tick = itertools.count().__next__
        self._looks = 0
        self._taken = 0

    def take(self) -> int:
        """How often `tick` was called since the last look. Not to be called by two threads at once.

        A count is read by counting, which is taken off again.
        """
        ticks = self.tick() - self._looks
        self._looks += 1
        new, self._taken = ticks - self._taken, ticks
        return new


_NOTHING: dict[str | None, Tally] = {}


class Cell:
    """A question that was asked of one view, and what was decided how often.

    `decision` and `answer` are None where they depend on the targeting key, on chance or on the
    time; else `tick` counts one more of them. What is not `is_kept` is asked once, and counted
    elsewhere.
    """

    __slots__ = ("_always", "answer", "by_switch", "decision", "is_kept", "question", "tick")

    def __init__(self, question: Question, decision: Decision | None) -> None:
        self.question = question
        self.decision = decision
        self.answer = None if decision is None else decision.allowed
        self.is_kept = False
        self._always = None if decision is None else Tally(decision)
        self.by_switch: dict[str | None, Tally] = {} if decision is None else _NOTHING
        """Without a `decision`: the calls that each switch blocked; by None, those that flowed."""
        self.tick: Callable[[], int] = _none if self._always is None else self._always.tick

    def tallies(self) -> Iterable[Tally]:
        """All there are."""
        if self._always is not None:
            return (self._always,)
        return list(self.by_switch.values())


class Counts:
    """Totals since the process began: they only grow, but for switches that had to make room.

    Safe to use from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._switches: dict[str, list[int]] = {}
        self._quiet: dict[str, None] = {}
        """Those that never blocked, in the order they came."""
        self.dropped = 0
        """Calls not counted for a switch, because there are too many switches."""
        self.unknown = 0
        """Calls of which nothing was known: no snapshot, or keys that no switch can have."""

    def add(self, question: Question, decision: Decision, calls: int = 1) -> None:
        """`calls` asked this and were told that; only the switch that decided has blocked them."""
        if not calls:
            return
        with self._lock:
            self.unknown += 0 if decision.known else calls
            for switch in question.switch_ids:
                counted = self._switches.get(switch)
                if counted is None:
                    if not self._has_room(blocked=switch == decision.switch):
                        self.dropped += calls
                        continue
                    counted = self._switches[switch] = [0, 0]
                    self._quiet[switch] = None
                if switch == decision.switch:
                    self._quiet.pop(switch, None)
                counted[switch == decision.switch] += calls

    def switches(self) -> dict[str, tuple[int, int]]:
        """Calls allowed and blocked, by switch id."""
        with self._lock:
            return {switch: (counted[0], counted[1]) for switch, counted in self._switches.items()}

    def _has_room(self, *, blocked: bool) -> bool:
        """Who has blocked is what a report is read for: it takes the place of one that never has,
        of the one that came last."""
        if len(self._switches) < MAX_SWITCHES:
            return True
        if not blocked or not self._quiet:
            return False
        last, _ = self._quiet.popitem()
        self.dropped += self._switches.pop(last)[0]
        return True


def _none() -> int:
    return 0
