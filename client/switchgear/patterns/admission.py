"""The permit of one call in a bulkhead."""

from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from switchgear.evaluation.keys import Key
from switchgear.patterns.call_priority import validate_key
from switchgear.patterns.limit_controller import MeasuredPermit
from switchgear.patterns.permits import PermitPool

if TYPE_CHECKING:
    from switchgear.patterns.bulkhead import Bulkhead

T = TypeVar("T")
HeldPermit = PermitPool | MeasuredPermit
"""A receiver of one permit, through its `release`."""


class Admission:
    """A permit of a bulkhead for a key and with a priority, for one `with` or `async with` at a
    time."""

    __slots__ = ("_bulkhead", "_held", "_key", "_priority")

    def __init__(self, bulkhead: "Bulkhead", key: Key | None, priority: int | None) -> None:
        self._bulkhead = bulkhead
        self._key = None if key is None else validate_key(key)
        self._priority = priority
        self._held: tuple[HeldPermit, Any] | None = None
        """The permit, and those of the blocks around this one. Unlike the call of a method, an
        assignment can't be interrupted by a signal."""

    def record_outcome(self, outcome: T) -> T:
        """Report the end of the call, with that error or result, to an adaptive limit; return the
        outcome. The permit is kept."""
        if self._held is not None and isinstance(self._held[0], MeasuredPermit):
            self._held[0].record(outcome)
        return outcome

    def __enter__(self) -> "Admission":
        self._held = self._bulkhead.acquire(self._key, self._priority), self._held
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._held is not None:
            permit, self._held = self._held
            permit.release(self._key, error)

    async def __aenter__(self) -> "Admission":
        self._held = await self._bulkhead.acquire_async(self._key, self._priority), self._held
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)


class StreamAdmission(Admission):
    """The permit of a stream, whose duration depends on its consumer: an adaptive limit ignores
    it."""

    __slots__ = ()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._held is not None and isinstance(self._held[0], MeasuredPermit):
            self._held[0].is_timed = False
        super().__exit__(kind, error, traceback)
