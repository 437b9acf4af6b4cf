"""Hedged requests: another attempt of a slow call while the first one is running.

The rules are those of gRPC's hedging policy; Finagle has them as backup requests.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from switchgear import journal
from switchgear.async_backend import require_asyncio
from switchgear.cancellation import find_refusal
from switchgear.decorators import F, wrap_by_kind
from switchgear.lazy import asyncio
from switchgear.patterns import retried_calls, time_limits
from switchgear.patterns.argument_checks import check_type
from switchgear.patterns.counters import Counters
from switchgear.patterns.retried_calls import RetriedCall
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.patterns.retry_rules import is_final
from switchgear.patterns.retry_state import is_budgeted
from switchgear.refusals import refusal_in

MAX_HEDGES = 10

if TYPE_CHECKING:
    Task = asyncio.Task[Any]


class Hedge:
    """A hedge: calls a slow coroutine function again while the first attempt still runs.

    The first success is the result. Only for idempotent calls: all attempts may have their effect.

        @Hedge("core->search", after_seconds=0.3)
        async def search(question: str) -> list[str]: ...

    After each `after_seconds` without a result another attempt begins, up to `max_hedges`, if the
    budget has a retry left and the deadline has not passed; it counts as a retry in `counters`. All
    attempts have one idempotency key, and each is a task with a copy of the context. After a
    success the other attempts are cancelled and awaited. A failed attempt does not end the call
    while another one runs; if all fail, the error of the first is raised. A catastrophic failure or
    a cancellation ends the call at once.

    `budget` and `counters` are shared by the dependency; by default the hedge has its own budget.
    Raise :class:`TypeError` or :class:`ValueError`, naming the argument.
    """

    def __init__(
        self,
        name: str,
        after_seconds: float,
        *,
        max_hedges: int = 1,
        budget: RetryBudget | None = None,
        counters: Counters | None = None,
    ) -> None:
        check_type("name", name, str)
        check_type("budget", budget, RetryBudget, is_optional=True)
        check_type("counters", counters, Counters, is_optional=True)
        if not isinstance(max_hedges, int) or isinstance(max_hedges, bool):
            raise TypeError(f"max_hedges must be a whole number, not {max_hedges!r:.50}")
        if not 1 <= max_hedges <= MAX_HEDGES:
            raise ValueError(f"max_hedges must be from 1 to {MAX_HEDGES}, not {max_hedges}")
        self.name = name
        self.after_seconds = _validate_seconds(after_seconds)
        self.max_hedges = max_hedges
        self.budget = budget or RetryBudget()
        self.counters = counters

    def __call__(self, function: F) -> F:
        """Return a coroutine function with hedges. Raise :class:`TypeError` for other functions."""
        return wrap_by_kind(
            function, plain=_refuse_plain, coroutine=self._coroutine, generator=None, what="a hedge"
        )

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            require_asyncio("a hedge", "leave hedge_after_seconds out")
            logical = _HedgedCall(self)
            retried_calls.begin(logical)
            if not is_budgeted(logical.outer, self.budget):
                self.budget.record_call()
            request_numbers: dict[str, list[int]] = {}

            async def attempt() -> Any:
                marker = _HedgedCall(self, request_numbers)
                retried_calls.begin(marker)
                return await function(*args, **kwargs)

            try:
                return await self._first_success(lambda: asyncio.create_task(attempt()))
            finally:
                retried_calls.end(logical)

        return call

    async def _first_success(self, start: "Callable[[], Task]") -> Any:
        tasks, may_hedge = [start()], True
        try:
            while True:
                ended = [task for task in tasks if task.done()]
                for task in ended:
                    if _ends_call(task):
                        return task.result()
                if len(ended) == len(tasks):
                    return tasks[0].result()
                may_hedge = may_hedge and len(tasks) <= self.max_hedges
                done, _ = await asyncio.wait(
                    [task for task in tasks if not task.done()],
                    timeout=self.after_seconds if may_hedge else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not done:
                    may_hedge = self._take_hedge(len(tasks))
                    if may_hedge:
                        tasks.append(start())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _take_hedge(self, attempt: int) -> bool:
        """Return True if another attempt may begin: take it from the budget and count it.

        Return False if the budget is spent, time is up, or a switch refuses the call.
        """
        left = time_limits.remaining_seconds()
        if (left is not None and left <= 0) or find_refusal() or not self.budget.take():
            return False
        if self.counters is not None:
            self.counters.retry()
        journal.record("call_hedged", self.name, attempt=attempt, after_seconds=self.after_seconds)
        return True


class _HedgedCall(RetriedCall):
    """The record of a hedged call, or of one attempt of it, among the active retries of a context.

    It retries no error. All attempts share `request_numbers`, so that a repeated request has the
    same idempotency key.
    """

    repeats = False

    def __init__(self, owner: Hedge, request_numbers: dict[str, list[int]] | None = None) -> None:
        super().__init__(0, owner)
        self.request_numbers = request_numbers

    def would_retry(self, error: BaseException) -> bool:
        return False

    def would_retry_result(self, result: object) -> bool:
        return False


def _validate_seconds(seconds: object) -> float:
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise TypeError(f"after_seconds must be a number, not {seconds!r:.50}")
    try:
        time_limits.validate_seconds(seconds)
    except ValueError as error:
        raise ValueError(f"after_seconds: {error}") from None
    return seconds


def _refuse_plain(function: Callable[..., Any]) -> NoReturn:
    raise TypeError(
        f"only a coroutine function can be hedged, not {function!r:.100}: a thread can't be "
        "cancelled. Use `async def`, also around a function that returns a coroutine"
    )


def _ends_call(task: "Task") -> bool:
    """Return True if this attempt ends the hedged call: by its success, or by a final failure."""
    if task.cancelled():
        return True
    error = task.exception()
    return error is None or (is_final(error) and refusal_in(error) is None)
