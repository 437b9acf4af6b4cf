"""How often something may be done: a token bucket. Pure: the clock is an argument."""


class Pace:
    """`per_second` in the long run, and `at_once` after a rest."""

    def __init__(self, per_second: float, at_once: float) -> None:
        self._per_second = per_second
        self._at_once = at_once
        self._left = at_once
        self._at = float("-inf")

    def allows(self, now: float) -> bool:
        """Whether it may be done at this moment (seconds of a clock that never goes back); if so,
        it counts as done."""
        if now > self._at:
            grown = (now - self._at) * self._per_second
            self._left, self._at = min(self._at_once, self._left + grown), now
        if self._left < 1:
            return False
        self._left -= 1
        return True
