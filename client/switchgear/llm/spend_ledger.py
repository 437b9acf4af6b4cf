"""A ledger of tokens that are reserved, or were spent within a sliding window."""

from collections import deque


class Ledger:
    """The tokens of all calls, or of one key if it is `per` that label. Not locked."""

    __slots__ = ("_parts", "open_count", "per", "reserved", "spent")

    def __init__(self, per: str | None) -> None:
        self.per = per
        self.spent = self.reserved = self.open_count = 0
        self._parts: deque[tuple[float, int]] = deque()
        """Spent tokens, each with the end of the slot of the window that they belong to."""

    def spend(self, tokens: int, now: float, width: float) -> None:
        if not tokens:
            return
        self.spent += tokens
        if self._parts and now < self._parts[-1][0]:
            end, before = self._parts.pop()
            self._parts.append((end, before + tokens))
        else:
            self._parts.append((now + width, tokens))

    def forget(self, until: float) -> None:
        """Drop the tokens of slots that ended at or before `until`."""
        while self._parts and self._parts[0][0] <= until:
            self.spent -= self._parts.popleft()[1]

    def seconds_until(self, used: int, until: float) -> float:
        """Return the seconds until at most `used` tokens are in use; 0.0 if that depends on calls
        in flight."""
        left = self.spent + self.reserved
        for end, tokens in self._parts:
            left -= tokens
            if left <= used:
                return end - until
        return 0.0
