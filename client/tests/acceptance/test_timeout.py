"""Calls that a timeout or a deadline ends, and calls that it leaves alone."""

import asyncio

import pytest

from switchgear import Deadline, DeadlineExceeded, Retry, RetryParameters, Timeout
from switchgear.patterns.deadline import NoTimeLeft, left
from switchgear.patterns.timeout import CallTimeout
from switchgear.testing import FakeClock
from tests.acceptance.callee import Callee

SHORT_SECONDS = 0.02
LONG_SECONDS = 60


async def hang():
    await asyncio.Event().wait()


def test_coroutine_that_takes_too_long_is_cancelled():
    """resilience4j: TimeLimiterTest.shouldThrowTimeoutExceptionAndInvokeCancel
    Finagle: TimeoutFilterTest "TimeoutFilter should times out a request that is not successful, cancels underlying"
    """
    cancelled = []

    @Timeout(SHORT_SECONDS)
    async def ask():
        try:
            await hang()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    with pytest.raises(CallTimeout, match=r"no response within 0\.02 s") as raised:
        asyncio.run(ask())

    assert raised.value.seconds == SHORT_SECONDS
    assert isinstance(raised.value, TimeoutError)
    assert cancelled == [True]


@pytest.mark.parametrize(
    ("outcome", "given"),
    [
        pytest.param(42, 42, id="resilience4j: TimeLimiterTest.shouldReturnResult"),
        pytest.param(
            KeyError("own"), KeyError, id="resilience4j: TimeLimiterTest.unwrapExecutionException"
        ),
        pytest.param(
            ExceptionGroup("two", [KeyError("a"), OSError("b")]),
            ExceptionGroup,
            id="Polly: TimeoutSpecs.Should_rethrow_aggregate_exception_with_multiple_exceptions_from_inside_delegate__pessimistic",
        ),
    ],
)
def test_outcome_in_time_is_given_as_it_is(outcome, given):
    """By id"""
    limited = Timeout(LONG_SECONDS)(Callee(outcome).later)

    if given == outcome:
        assert asyncio.run(limited()) == outcome
        return
    with pytest.raises(given) as raised:
        asyncio.run(limited())
    assert raised.value is outcome


def test_plain_function_is_not_interrupted_and_its_late_result_is_given():
    """Polly: TimeoutSpecs.Should_throw_when_timeout_is_less_than_execution_duration__pessimistic

    Differs: Polly abandons the thread, which runs on. No thread can be stopped, so a plain function
    is told what is left, and its result is given however late it comes.
    """
    clock, remaining = FakeClock(), []

    @Timeout(2, clock=clock.monotonic)
    def ask():
        remaining.append(left())
        clock.advance(3)
        remaining.append(left())
        return "late"

    assert ask() == "late"
    assert remaining == [2, 0]


def test_cancellation_by_the_caller_is_no_timeout():
    """Polly: TimeoutSpecs.Should_be_able_to_cancel_with_user_cancellation_token_before_timeout__optimistic
    Polly: TimeoutResilienceStrategyTests.Execute_Cancelled_EnsureNoTimeout
    """

    async def main():
        task = asyncio.create_task(Timeout(LONG_SECONDS)(hang)())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert asyncio.run(main())


def test_error_raised_while_it_is_cut_off_is_not_masked():
    """Polly: TimeoutSpecs.Should_not_mask_user_exception_if_user_exception_overlaps_with_timeout"""
    own = KeyError("its own error")

    @Timeout(SHORT_SECONDS)
    async def ask():
        try:
            await hang()
        except asyncio.CancelledError:
            raise own from None

    with pytest.raises(KeyError) as raised:
        asyncio.run(ask())

    assert raised.value is own


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(0, id="Should_throw_when_timeout_is_zero_by_seconds"),
        pytest.param(-10, id="Should_throw_when_timeout_is_less_than_zero_by_seconds"),
        # Differs: None says that there is no limit, and nothing is limited to more than a day.
        pytest.param(float("inf"), id="Should_not_throw_when_timeout_is_infinitetimespan"),
        pytest.param(2**31 - 1, id="Should_not_throw_when_timeout_seconds_is_maxvalue"),
    ],
)
@pytest.mark.parametrize("kind", [Timeout, Deadline])
def test_limit_that_makes_no_sense_is_refused(kind, seconds):
    """Polly: TimeoutSpecs, by id"""
    with pytest.raises(ValueError, match="seconds"):
        kind(seconds)


@pytest.mark.parametrize(
    ("timeout", "deadline", "remaining"),
    [
        pytest.param(1, None, 1, id="deadlines, finite timeout"),
        pytest.param(1, 0.2, 0.2, id="deadlines, finite timeout (adjusts existing ones)"),
        pytest.param(None, None, None, id="deadlines, infinite timeout"),
        pytest.param(None, 1, 1, id="deadlines, infinite timeout (adjusts existing ones)"),
    ],
)
def test_inner_limit_never_exceeds_the_outer_one(timeout, deadline, remaining):
    """Finagle: TimeoutFilterTest, by id"""
    clock = FakeClock().monotonic

    @Deadline(deadline, clock=clock)
    @Timeout(timeout, clock=clock)
    def ask():
        return left()

    assert ask() == remaining


def test_call_without_a_deadline_is_made_and_one_after_it_is_not():
    """Finagle: DeadlineFilterTest "DeadlineFilter should service the request when no deadline is set"
    Finagle: DeadlineFilterTest "DeadlineFilter should ignore non-expired deadline for the request"
    Finagle: DeadlineFilterTest "tokens added to reject bucket on request without deadline"

    Differs in that no share of the late calls is made nevertheless: nobody waits for their answer.
    """
    clock, callee = FakeClock(), Callee("polo")
    call = Retry("callee", RetryParameters(base_seconds=0), retry_on=(Exception,))(
        Timeout(None)(callee)
    )

    without = call()
    with Deadline(1, clock=clock.monotonic):
        clock.advance(0.2)
        in_time = call()
        clock.advance(1)
        with pytest.raises(NoTimeLeft) as refused:
            call()

    assert (without, in_time) == ("polo", "polo")
    assert isinstance(refused.value, DeadlineExceeded)
    assert len(callee.calls) == 2
