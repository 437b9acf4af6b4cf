"""Refusals: calls that were rejected here before they began.

A refusal is not a failure of the dependency, so no breaker counts it and no retry repeats it. The
same applies to exceptions raised from a refusal: SDKs raise such exceptions for errors of their
transport.
"""

from collections.abc import Iterator

MAX_DEPTH = 10
"""Maximum number of causes to follow; chains may be circular."""


class Refused(Exception):
    """Base class of refusals: the call was rejected before it began.

    Refusals can be pickled and recreated from their `args`, which are plain values, so they survive
    other processes and Celery's result backends.
    """


class CircuitOpen(Refused):
    """Raised if the breaker of `dependency` is open, or half-open with all its probes running.

    `retry_after` is the minimum number of seconds until the breaker may admit calls. It is 0.0 if
    the time depends on running probes, and None if an operator forces the breaker's mode.

    `last_failure` is the shortened text of the last failure, None without one.
    """

    def __init__(
        self, dependency: str, retry_after: float | None = None, last_failure: str | None = None
    ) -> None:
        super().__init__(dependency, retry_after, last_failure)
        self.dependency = dependency
        self.retry_after = retry_after
        self.last_failure = last_failure

    def __str__(self) -> str:
        again = "" if self.retry_after is None else f"; retry in {self.retry_after:.1f} s"
        why = f": {self.last_failure}" if self.last_failure else ""
        return f"the breaker of {self.dependency} is open{again}{why}"


class BulkheadFull(Refused):
    """Raised if there was no permit for a call in the bulkhead `name`.

    `why` names the limit: "queue is full", "no place within 5.0 s", "limit of key" or "displaced".
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.name = name
        self.why = why

    def __str__(self) -> str:
        return f"the bulkhead {self.name} is full: {self.why}"


def refusal_in(error: BaseException, deepest: int = MAX_DEPTH) -> Refused | None:
    """Return `error` if it is a refusal, otherwise the refusal among its causes, if any.

    At most `deepest` errors of the chain of causes are examined. A group counts if all its members
    are refusals or come from one.
    """
    found: BaseException | None = error
    for depth in range(deepest, 0, -1):
        if found is None or isinstance(found, Refused):
            return found
        if isinstance(found, BaseExceptionGroup):
            inside = [refusal_in(each, depth - 1) for each in found.exceptions]
            if None not in inside:
                return inside[0]
        found = found.__cause__
    return None


def walk_errors(error: BaseException, *, contexts: bool = False) -> Iterator[BaseException]:
    """Yield `error`, its causes and its group members, recursively; at most 100 errors.

    With `contexts`, also yield the context of an error without a cause.
    """
    seen: dict[int, BaseException] = {}
    ahead: list[BaseException | None] = [error]
    while ahead and len(seen) < 100:
        found = ahead.pop()
        if found is None or id(found) in seen:
            continue
        seen[id(found)] = found
        yield found
        ahead.append(found.__cause__ or (found.__context__ if contexts else None))
        if isinstance(found, BaseExceptionGroup):
            ahead.extend(reversed(found.exceptions))
