"""A time limit of one attempt."""

import time

from switchgear.patterns.time_limited import TimeLimited
from switchgear.patterns.time_limits import Clock, TimeLimit
from switchgear.patterns.timeout_errors import CallTimeout

__all__ = ["CallTimeout", "Timeout"]


class Timeout(TimeLimited):
    """A timeout: limits one call to `seconds`, and to the time that an outer limit leaves.

    Without `seconds` only the outer limit applies.

        @Timeout(3)
        async def ask(question: str) -> str: ...

    A coroutine is cut off with :class:`CallTimeout`, or `DeadlineExceeded` if an outer deadline was
    shorter. A plain function can't be interrupted: it does not begin when no time is left, its code
    may check `deadline.remaining_seconds()`, and a late result is returned unchanged. Put the
    timeout innermost in a stack, so that outer patterns see an error of the call, and no
    cancellation.

    Decorate a generator instead of using `with timeout:` over a `yield` in it: between two steps
    the consumer runs in that block, and would be limited and cancelled.
    """

    _what = "a timeout"

    def __init__(self, seconds: float | None, *, clock: Clock = time.monotonic) -> None:
        super().__init__(seconds, clock=clock)

    def _make_error(self, limit: TimeLimit) -> TimeoutError:
        if limit.inherited_from is None:
            return CallTimeout(limit.seconds)
        return limit.source.make_error()
