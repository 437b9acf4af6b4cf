"""A token bucket. Pure: the clock is an argument."""


class Pace:
    """`per_second` in the long run, and `at_once` after a rest."""

    def __init__(self, per_second: float, at_once: float) -> None:
        self._per_second = per_second
        self._at_once = at_once
        self._left = at_once
        self._at = float("-inf")

    def allows(self, now: float) -> bool:
        """Take one token if available, and return whether it was; `now` is in monotonic seconds."""
        if now > self._at:
            grown = (now - self._at) * self._per_second
            self._left, self._at = min(self._at_once, self._left + grown), now
        if self._left < 1:
            return False
        self._left -= 1
        return True
