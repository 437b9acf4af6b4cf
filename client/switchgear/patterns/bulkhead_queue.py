"""Calls in the queue of a bulkhead."""

from collections.abc import Callable

from switchgear.journal import log_error


class Waiter:
    """A call in the queue of a bulkhead, or about to enter it.

    `wake` is called, in any thread, once `state` is "admitted" or "displaced" (by a call of higher
    priority). It is None for a call that can't wait; if it raises, the call can't go on. `reason`
    names the limit that rejected a call.
    """

    __slots__ = ("key", "rank", "reason", "state", "wake")

    def __init__(self, key: str | None, priority: int, wake: Callable[[], object] | None) -> None:
        self.key = key
        self.rank = (-priority, 0)
        self.wake = wake
        self.state = "waiting"
        self.reason = ""


def wake(waiter: Waiter) -> bool:
    try:
        if waiter.wake is not None:
            waiter.wake()
    except RuntimeError:  # Its event loop is closed, so the call can't go on.
        return False
    except Exception:
        log_error("a call that waits for a bulkhead could not be woken")
        return False
    return True
