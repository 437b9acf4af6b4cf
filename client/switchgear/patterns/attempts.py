"""Whether something here is being tried again and again, and as which logical call.

A retry inside another one would multiply: three layers of three attempts are 27 calls. So the
outermost alone tries again, and it may be in another process: `propagation` tells.
"""

from collections import Counter
from contextvars import ContextVar


class Attempts:
    """One logical call, while it is tried. `number` is 0 for the first attempt, None where nothing
    is tried whatever is around; `owner` who tries, None for a caller in another process."""

    is_over = False
    """Left behind: a task that outlives it is no part of it."""
    before: "Attempts | None" = None
    key: str | None = None
    """Its idempotency key, once somebody has asked."""
    asked: "Counter[str] | None" = None
    """What this attempt has sent already, by digest."""

    def __init__(self, number: int | None, owner: object = None) -> None:
        self.number = number
        self.owner = owner


_active: ContextVar[Attempts | None] = ContextVar("switchgear_attempts", default=None)


def active() -> Attempts | None:
    """What is being tried here, None outside."""
    found = _active.get()
    if found is None:
        return None
    found = _innermost(found)
    return None if found is None or found.number is None else found


def begin(attempts: Attempts) -> None:
    """From here on it is this that is tried."""
    before = _active.get()
    if before is not None:
        attempts.before = _innermost(before)
    _active.set(attempts)


def end(attempts: Attempts) -> None:
    """It is over. Done where it began; elsewhere, it is only marked."""
    attempts.is_over = True
    if _active.get() is attempts:
        _active.set(attempts.before)


def _innermost(found: Attempts | None) -> Attempts | None:
    while found is not None and found.is_over:
        found = found.before
    return found
