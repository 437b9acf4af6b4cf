"""Another attempt beside a slow one: which of the two answers, and what becomes of the other."""

import asyncio
from contextvars import ContextVar

import pytest

from switchgear.patterns.counters import Counters
from switchgear.patterns.hedging import Hedge
from switchgear.patterns.retry_budget import RetryBudget
from tests.acceptance.callee import away
from tests.patterns.clocks import Clock

SOON_SECONDS = 0.005
LONG_SECONDS = 60.0
PATIENCE_SECONDS = 10.0

request_id: ContextVar[str] = ContextVar("request_id", default="none")


class Attempts:
    """The original attempt and its hedge, each of which ends when a test says so."""

    def __init__(self, total=2):
        self.outcomes = [asyncio.get_running_loop().create_future() for _ in range(total)]
        self.begun = asyncio.Queue()
        self.cancelled = []
        self.count = 0

    async def __call__(self):
        n, self.count = self.count, self.count + 1
        self.begun.put_nowait(n)
        try:
            return await asyncio.shield(self.outcomes[n])
        except asyncio.CancelledError:
            self.cancelled.append(n)
            raise

    async def has_begun(self, n):
        while await self.begun.get() != n:
            pass


def run(make):
    async def main():
        return await asyncio.wait_for(make(), PATIENCE_SECONDS)

    return asyncio.run(main())


def hedge(after_seconds=SOON_SECONDS, **given):
    counters = Counters()
    return Hedge("callee", after_seconds, counters=counters, **given), counters


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param("orig", id="Original request completes successfully before timer fires"),
        pytest.param(away(), id="Original request completes unsuccessfully before timer fires"),
    ],
)
def test_quick_attempt_is_the_only_one(outcome):
    """Finagle: BackupRequestFilterTest, by id"""
    hedging, counters = hedge(LONG_SECONDS)

    async def main():
        attempts = Attempts()
        task = asyncio.create_task(hedging(attempts)())
        await attempts.has_begun(0)
        if isinstance(outcome, Exception):
            attempts.outcomes[0].set_exception(outcome)
        else:
            attempts.outcomes[0].set_result(outcome)
        (given,) = await asyncio.gather(task, return_exceptions=True)
        return given, attempts.count

    assert run(main) == (outcome, 1)
    assert counters.counted()["retry"] == 0


@pytest.mark.parametrize(
    ("first", "loser"),
    [
        pytest.param(1, 0, id="Backup request completes successfully first, sendInterrupts=true"),
        pytest.param(0, 1, id="Original request completes successfully first, sendInterrupts=true"),
    ],
)
def test_first_answer_is_given_and_the_other_attempt_cancelled(first, loser):
    """Finagle: BackupRequestFilterTest, by id
    Polly: HedgingResilienceStrategyTests.ExecuteAsync_EnsurePrimaryTaskCancelled_Ok
    Polly: HedgingResilienceStrategyTests.ExecuteAsync_EnsureHedgedTasksCancelled_Ok

    Differs in that the other attempt is always cancelled.
    """
    hedging, counters = hedge()

    async def main():
        attempts = Attempts()
        task = asyncio.create_task(hedging(attempts)())
        await attempts.has_begun(1)
        attempts.outcomes[first].set_result(first)
        return await task, attempts.cancelled

    assert run(main) == (first, [loser])
    assert counters.counted()["retry"] == 1


@pytest.mark.parametrize(
    ("failing", "answering"),
    [
        pytest.param(0, 1, id="Original request completes unsuccessfully first"),
        pytest.param(1, 0, id="Backup request completes unsuccessfully first"),
    ],
)
def test_failure_of_one_attempt_waits_for_the_other(failing, answering):
    """Finagle: BackupRequestFilterTest, by id"""
    hedging, _ = hedge()

    async def main():
        attempts = Attempts()
        task = asyncio.create_task(hedging(attempts)())
        await attempts.has_begun(1)
        attempts.outcomes[failing].set_exception(away())
        for _ in range(5):
            await asyncio.sleep(0)
        waited = not task.done()
        attempts.outcomes[answering].set_result("fine")
        return waited, await task

    assert run(main) == (True, "fine")


def test_error_of_the_original_is_raised_if_all_fail():
    """Polly: HedgingResilienceStrategyTests.ExecuteAsync_ExceptionsHandled_ShouldThrowLastException

    That test expects the error of the primary as well, whatever its name says.
    """
    hedging, _ = hedge()

    async def main():
        attempts = Attempts()
        task = asyncio.create_task(hedging(attempts)())
        await attempts.has_begun(1)
        attempts.outcomes[1].set_exception(KeyError("of the hedge"))
        attempts.outcomes[0].set_exception(LookupError("of the original"))
        return await asyncio.gather(task, return_exceptions=True)

    (error,) = run(main)

    assert repr(error) == repr(LookupError("of the original"))


def test_spent_budget_allows_no_hedge():
    """Finagle: BackupRequestFilterTest "Don't send backup when backup timer fires if cannot withdraw from $budgetName" """
    hedging, counters = hedge(budget=RetryBudget(rate=0, per_second=0, clock=Clock()))

    async def main():
        attempts = Attempts()
        task = asyncio.create_task(hedging(attempts)())
        await attempts.has_begun(0)
        await asyncio.sleep(4 * SOON_SECONDS)
        attempts.outcomes[0].set_result("orig")
        return await task, attempts.count

    assert run(main) == ("orig", 1)
    assert counters.counted()["retry"] == 0


def test_cancellation_by_the_caller_ends_all_attempts():
    """Polly: HedgingResilienceStrategyTests.ExecuteAsync_CancellationLinking_Ok"""
    hedging, _ = hedge()

    async def main():
        attempts = Attempts()
        task = asyncio.create_task(hedging(attempts)())
        await attempts.has_begun(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled(), sorted(attempts.cancelled)

    assert run(main) == (True, [0, 1])


def test_attempts_see_the_context_of_the_caller_and_not_that_of_each_other():
    """Polly: HedgingResilienceStrategyTests.ExecuteAsync_EveryHedgedTaskShouldHaveDifferentContexts"""
    hedging, _ = hedge()
    request_ids = []

    @hedging
    async def ask():
        request_ids.append(request_id.get())
        request_id.set(f"changed by attempt {len(request_ids)}")
        if len(request_ids) == 1:
            await asyncio.Event().wait()

    async def main():
        request_id.set("of the caller")
        await ask()
        return request_id.get()

    assert run(main) == "of the caller"
    assert request_ids == ["of the caller", "of the caller"]


@pytest.mark.parametrize("seconds", [0, -1])
def test_hedge_without_a_wait_is_refused(seconds):
    """Polly: HedgingResilienceStrategyTests.ExecuteAsync_ZeroHedgingDelay_EnsureAllTasksSpawnedAtOnce

    Differs: every call would be made twice.
    """
    with pytest.raises(ValueError, match="after_seconds"):
        hedge(seconds)
