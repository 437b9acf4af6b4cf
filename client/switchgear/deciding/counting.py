"""How often each switch was asked for, in all of this process's life, in bounded memory."""

import itertools
import threading

from switchgear.deciding.evaluate import Decision, Question

MOST_SWITCHES = 1000
"""As many as a report may have."""


class Cell:
    """A question that has the same answer until the snapshot changes, and how often it was asked.

    `answer` is None where it depends on the targeting key, on chance or on the time. `tick` counts
    one call: it is atomic and takes no lock.
    """

    __slots__ = ("_looks", "_taken", "answer", "decision", "question", "tick")

    def __init__(self, question: Question, decision: Decision | None) -> None:
        self.question = question
        self.decision = decision
        self.answer = None if decision is None else decision.allowed
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


class Counts:
    """Totals since the process began: they only grow. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._switches: dict[str, list[int]] = {}
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
                    if len(self._switches) >= MOST_SWITCHES:
                        self.dropped += calls
                        continue
                    counted = self._switches[switch] = [0, 0]
                counted[switch == decision.switch] += calls

    def switches(self) -> dict[str, tuple[int, int]]:
        """Calls allowed and blocked, by switch id."""
        with self._lock:
            return {switch: (counted[0], counted[1]) for switch, counted in self._switches.items()}
