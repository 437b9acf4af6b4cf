"""Permits and priorities of single calls to a bulkhead."""

import logging
import operator
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from switchgear.evaluation.keys import Key, require_key_text
from switchgear.patterns.entered_contexts import pop_entry, push_entry
from switchgear.patterns.limit_controller import MeasuredPermit
from switchgear.patterns.permits import PermitPool

if TYPE_CHECKING:
    from switchgear.patterns.bulkhead import Bulkhead

T = TypeVar("T")
log = logging.getLogger("switchgear")
HeldPermit = PermitPool | MeasuredPermit
"""A permit in use; its `release` returns the permit to the bulkhead."""


class BulkheadPermit:
    """A `with` or `async with` block that holds one permit for a key and a priority."""

    __slots__ = ("_bulkhead", "_held", "_key", "_priority")

    def __init__(self, bulkhead: "Bulkhead", key: Key | None, priority: int | None) -> None:
        self._bulkhead = bulkhead
        self._key = None if key is None else require_key_text(key)
        self._priority = priority
        self._held: tuple[HeldPermit, Any] | None = None
        """A linked list of permits, innermost first: no signal handler interrupts an assignment."""

    def record_outcome(self, outcome: T) -> T:
        """Report the result or error of the call to an adaptive limit, and return it."""
        if self._held is not None and isinstance(self._held[0], MeasuredPermit):
            self._held[0].record(outcome)
        return outcome

    def __enter__(self) -> "BulkheadPermit":
        self._held = self._bulkhead.acquire(self._key, self._priority), self._held
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if self._held is not None:
            permit, self._held = self._held
            permit.release(self._key, error)

    async def __aenter__(self) -> "BulkheadPermit":
        self._held = await self._bulkhead.acquire_async(self._key, self._priority), self._held
        return self

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)


class StreamPermit(BulkheadPermit):
    """A block for a stream: an adaptive limit ignores its duration."""

    __slots__ = ()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if self._held is not None and isinstance(self._held[0], MeasuredPermit):
            self._held[0].is_timed = False
        super().__exit__(kind, error, traceback)


class BulkheadBlock(ABC):
    """The `with` and `async with` blocks of a bulkhead."""

    _priority: Any

    @abstractmethod
    def acquire(self, key: Key | None = None, priority: int | None = 0) -> HeldPermit: ...

    @abstractmethod
    async def acquire_async(
        self, key: Key | None = None, priority: int | None = 0
    ) -> HeldPermit: ...

    @abstractmethod
    def _release_lost(self) -> None:
        """Release a permit whose block was left in another context than it was entered in."""

    def __enter__(self) -> None:
        self._push(self.acquire(None, self._fixed_priority()))

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        entry = pop_entry(self)
        if entry is not None:  # In a forked child the permit may belong to the parent's set.
            entry[0].release(None, error)
        else:
            self._release_lost()

    async def __aenter__(self) -> None:
        self._push(await self.acquire_async(None, self._fixed_priority()))

    async def __aexit__(self, *raised: Any) -> None:
        self.__exit__(*raised)

    def _push(self, permit: HeldPermit) -> None:
        try:
            push_entry(self, permit, None)
        except BaseException:
            permit.release()
            raise

    def _fixed_priority(self) -> int:
        return 0 if callable(self._priority) else self._priority


class PriorityReader:
    """A converter of priorities to numbers that never raises: invalid priorities count as 0."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._has_warned = False

    def read_priority(self, given: Any) -> int:
        if given is None:
            return 0
        try:
            return operator.index(given)
        except Exception:  # A foreign `__index__` may raise anything.
            if not self._has_warned:
                self._has_warned = True
                kind = type(given).__name__
                log.warning(
                    "switchgear: a priority in bulkhead %s is no whole number but %s: 0 is taken",
                    self._name,
                    kind,
                )
            return 0


def validate_priority(given: Any) -> Any:
    """Return `given`, a number or a function of the arguments of a call; 0 for None.

    Raise :class:`TypeError` for any other value.
    """
    if given is None:
        return 0
    if not callable(given) and not hasattr(type(given), "__index__"):
        raise TypeError(f"a priority is a whole number or a function, not {given!r:.50}")
    return given
