"""Calls that were not made, because something here said no: no failure of whoever was to be called.

None of them is counted as a failure by a breaker around it, and none is tried again. That holds as
well for what was raised from one of them, as SDKs do with what comes out of their transport.
"""

from collections.abc import Iterator

DEEPEST = 10
"""So many causes are looked at: chains may be circular."""


class Refused(Exception):
    """A call that was turned away before it began; see what derives from this.

    Each can be pickled and made again from its `args`, which are plain values: so it comes whole
    out of another process, or out of Celery's results.
    """


class CircuitOpen(Refused):
    """The breaker of `dependency` is open, or has enough probes on their way.

    `retry_after` is how many seconds it stays so at least, 0.0 if that depends on probes; None if
    an operator forces it. `last_failure` is what its last failure said, shortened, None if there
    was none.
    """

    def __init__(
        self,
        dependency: str,
        retry_after: float | None = None,
        last_failure: str | None = None,
    ) -> None:
        super().__init__(dependency, retry_after, last_failure)
        self.dependency = dependency
        self.retry_after = retry_after
        self.last_failure = last_failure

    def __str__(self) -> str:
        again = "" if self.retry_after is None else f", again in {self.retry_after:.1f} s"
        why = f": {self.last_failure}" if self.last_failure else ""
        return f"the breaker of {self.dependency} is open{again}{why}"


class BulkheadFull(Refused):
    """There was no place for this call in the bulkhead `name`: `why` says which limit it met, as
    "queue is full", "no place within 5.0 s", "limit of key" or "displaced"."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.name = name
        self.why = why

    def __str__(self) -> str:
        return f"the bulkhead {self.name} has no place: {self.why}"


def refusal_in(error: BaseException, deepest: int = DEEPEST) -> Refused | None:
    """The refusal that `error` is, or was explicitly raised from; of a group the first one, if all
    in it are refusals. None if it is something else."""
    found: BaseException | None = error
    for depth in range(deepest, 0, -1):
        if found is None or isinstance(found, Refused):
            return found
        if isinstance(found, BaseExceptionGroup):
            inside = _all_refused(found, depth - 1)
            if inside is not None:
                return inside
        found = found.__cause__
    return None


def _all_refused(group: BaseExceptionGroup[BaseException], deepest: int) -> Refused | None:
    first = None
    for each in group.exceptions:
        refusal = refusal_in(each, deepest)
        if refusal is None:
            return None
        first = first or refusal
    return first


def within(error: BaseException, *, contexts: bool = False) -> Iterator[BaseException]:
    """`error`, what it was raised from, and what is in groups, each with theirs: 100 at most. With
    `contexts` also what was being handled when it was raised."""
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
