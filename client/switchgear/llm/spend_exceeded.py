"""The refusal of a call for which a token budget has no room."""

from switchgear.refusals import Refused


class SpendExceeded(Refused):
    """The token budget `name` has no room for this call: nothing was reserved, and nothing sent.

    `limit` tokens are allowed in `window_seconds`, for all calls, or for each key of the label
    `per`. The key itself is not included. `retry_after` is the minimum number of seconds until
    there may be room, 0.0 if that depends on calls in flight; None if `tokens` alone exceed the
    limit.
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
            why = f"{limit} are reserved or spent, again in {self.retry_after:.1f} s"
        else:
            why = f"{limit} are reserved or spent, again when calls in flight have ended"
        return f"the token budget of {self.name} has no room for {self.tokens} tokens: {why}"
