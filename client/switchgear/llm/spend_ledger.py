"""The ledger of reserved and spent tokens, and the error for calls that have no room in it."""

from collections import deque

from switchgear.refusals import Refused


class SpendExceeded(Refused):
    """Raised if a token budget has no room for a call; nothing was reserved or sent.

    The budget `name` allows `limit` tokens in `window_seconds`, in total or for each key. `per` is
    the word for a key, such as "user", None for the total.

    `retry_after` is the minimum number of seconds until there may be room. It is 0.0 if the time
    depends on calls in flight, and None if `tokens` alone exceed the limit.
    """

    def __init__(
        self,
        name: str,
        tokens: int,
        limit: int,
        per: str | None,
        window_seconds: float,
        retry_after: float | None,
    ) -> None:
        super().__init__(name, tokens, limit, per, window_seconds, retry_after)
        self.name = name
        self.tokens = tokens
        self.limit = limit
        self.per = per
        self.window_seconds = window_seconds
        self.retry_after = retry_after

    def __str__(self) -> str:
        limit = f"{self.limit}{f' per {self.per}' if self.per else ''} in {self.window_seconds:g} s"
        if self.retry_after is None:
            why = f"{limit} are allowed"
        elif self.retry_after:
            why = f"{limit} are reserved or spent; retry in {self.retry_after:.1f} s"
        else:
            why = f"{limit} are reserved or spent; retry when calls in flight have finished"
        return f"the token budget of {self.name} has no room for {self.tokens} tokens: {why}"


class SpendLedger:
    """The tokens reserved or spent within a sliding window, by all calls or with one key.

    Not thread-safe. `per` is the word for a key, such as "user", None for all calls.
    """

    __slots__ = ("_parts", "open_count", "per", "reserved", "spent")

    def __init__(self, per: str | None) -> None:
        self.per = per
        self.spent = self.reserved = self.open_count = 0
        self._parts: deque[tuple[float, int]] = deque()
        """Pairs of the end of a slot of the window and the tokens spent in the slot."""

    def spend(self, tokens: int, now: float, width: float) -> None:
        if not tokens:
            return
        self.spent += tokens
        if self._parts and now < self._parts[-1][0]:
            end, before = self._parts.pop()
            self._parts.append((end, before + tokens))
        else:
            self._parts.append((now + width, tokens))

    def drop_before(self, until: float) -> None:
        """Drop the tokens spent in those slots of the window that ended at or before `until`."""
        while self._parts and self._parts[0][0] <= until:
            self.spent -= self._parts.popleft()[1]

    def seconds_until(self, used: int, until: float) -> float:
        """Return the seconds until at most `used` tokens are in use.

        It is 0.0 if that depends on calls in flight. `until` is the start of the window.
        """
        left = self.spent + self.reserved
        for end, tokens in self._parts:
            left -= tokens
            if left <= used:
                return end - until
        return 0.0
