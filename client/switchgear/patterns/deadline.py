"""A time limit of a whole operation: all its attempts, and the pauses between them."""

from switchgear.patterns.time_limited import TimeLimited
from switchgear.patterns.time_limits import TimeLimit, remaining_seconds
from switchgear.patterns.timeout_errors import DeadlineExceeded, NoTimeLeft

__all__ = ["Deadline", "DeadlineExceeded", "NoTimeLeft", "left", "remaining_seconds"]

left = remaining_seconds
"""The previous name of :func:`remaining_seconds`."""


class Deadline(TimeLimited):
    """A deadline: limits everything inside to `seconds`, or to the time that an outer limit leaves.

        @Deadline(8)
        @Timeout(3)
        async def ask(question: str) -> str: ...

    Coroutines are cancelled with :class:`DeadlineExceeded`. Plain functions can't be interrupted:
    after the deadline no call or attempt begins and none waits longer, but a late result is
    returned unchanged. Code may check :func:`remaining_seconds`, as all patterns and transports of
    this library do. Generators are limited as by a `Timeout`.

    A breaker directly inside sees the deadline's cut-off as a cancellation and does not count it.
    Put a `Timeout(None)` inside the breaker: it takes over the deadline's limit and raises an
    error that the breaker counts.

    With `cuts=False` no coroutine is cancelled, which is cheaper: use `cuts=False` around a
    `Timeout` that covers every wait inside.
    """

    _what = "a deadline"
    _converts_timeouts = True

    def _make_error(self, limit: TimeLimit) -> TimeoutError:
        return limit.source.make_error()
