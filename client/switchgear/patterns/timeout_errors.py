"""The errors of time limits. All of them are a :class:`TimeoutError`."""

from typing import Any

from switchgear.refusals import Refused


class CallTimeout(TimeoutError):
    """Raised if one call took longer than its timeout of `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no response within {seconds:.3g} s")
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.seconds,)


class DeadlineExceeded(TimeoutError):
    """Raised if a call with all its attempts is not done within a deadline of `seconds`.

    `attempts` is the number of attempts made; `caused_by_retrying` is True if the first attempt
    failed within the limit, and a later one exceeded it.
    """

    def __init__(self, seconds: float, attempts: int = 1, caused_by_retrying: bool = False) -> None:
        super().__init__(f"not finished within {seconds:.3g} s")
        self.seconds = seconds
        self.attempts = attempts
        self.caused_by_retrying = caused_by_retrying

    def __str__(self) -> str:
        why = f", after {self.attempts} attempts" if self.caused_by_retrying else ""
        return f"not finished within {self.seconds:.3g} s{why}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.seconds, self.attempts, self.caused_by_retrying)


class NoTimeLeft(DeadlineExceeded, Refused):
    """Raised instead of beginning a call if no time is left. Not a failure of the callee."""
