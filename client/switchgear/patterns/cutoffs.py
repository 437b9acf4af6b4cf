"""Cancels tasks whose time is over. As :func:`asyncio.timeout`, but with one timer for all tasks of
a loop: most calls end in time, and a timer of each would cost more than all the rest."""

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

FEW = 100
LEAST_PAUSE_SECONDS = 0.01
"""Between two looks at more than a few tasks: so much later one may be cancelled."""


class Cutoff:
    """One task that is to be cancelled in `seconds`."""

    __slots__ = ("cancelling", "has_fired", "is_settled", "task", "timer", "when")

    def __init__(
        self, task: "asyncio.Task[Any]", loop: "asyncio.AbstractEventLoop", seconds: float
    ) -> None:
        self.task = task
        self.cancelling = task.cancelling()
        self.has_fired = False
        self.is_settled = False
        timer = _here.timer
        if timer is None or timer.loop is not loop:
            timer = _here.timer = _Timer(loop)
        self.timer: _Timer = timer
        self.when = when = loop.time() + seconds
        timer.waiting[self] = None
        if timer.handle is None or when < timer.due:
            timer.arm(when)

    def stop(self) -> None:
        """It was in time."""
        self.timer.waiting.pop(self, None)

    def fire(self) -> None:
        self.has_fired = True
        self.task.cancel()

    def settle(self) -> bool:
        """Take the cancellation back, once; whether it was the only one there is."""
        if not self.has_fired or self.is_settled:
            return False
        self.is_settled = True
        return self.task.uncancel() <= self.cancelling


class _Timer:
    """The timer of a loop. It goes off no later than the first of `waiting` is due, perhaps in vain
    if that one has been in time."""

    def __init__(self, loop: "asyncio.AbstractEventLoop") -> None:
        self.loop = loop
        self.waiting: dict[Cutoff, None] = {}
        self.handle: asyncio.TimerHandle | None = None
        self.due = 0.0

    def arm(self, when: float) -> None:
        if self.handle is not None:
            self.handle.cancel()
        self.due = when
        self.handle = self.loop.call_at(when, self._look)

    def _look(self) -> None:
        self.handle = None
        # A loop calls what is due within its clock's resolution, so a little early.
        until = max(self.loop.time(), self.due)
        for cutoff in [each for each in self.waiting if each.when <= until]:
            del self.waiting[cutoff]
            cutoff.fire()
        if self.waiting:
            first = min(each.when for each in self.waiting)
            pause = LEAST_PAUSE_SECONDS if len(self.waiting) > FEW else 0.0
            self.arm(max(first, until + pause))


class _Here(threading.local):
    timer: _Timer | None = None
    """Of the loop that ran last in this thread."""


_here = _Here()
