"""The kinds of code that can be retried, and the pauses between attempts."""

import asyncio

import pytest

from switchgear import Breaker, Bulkhead, BulkheadParameters, Retry, RetryParameters, Timeout
from switchgear.patterns.retry_rules import backoff_seconds
from tests.acceptance.callee import Callee, away

AT_ONCE = RetryParameters(base_seconds=0)


class Client:
    """An object whose methods are retried."""

    def __init__(self):
        self.callee = Callee(away(), 42)

    @Retry("client", AT_ONCE)
    def get(self, *args, **kwargs):
        return self.callee(*args, **kwargs)

    @Retry("client", AT_ONCE)
    async def aget(self, *args, **kwargs):
        return await self.callee.later(*args, **kwargs)


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda client: client.get("a", key=1), id="TestRetryingCaller.test_retries"),
        pytest.param(
            lambda client: asyncio.run(client.aget("a", key=1)),
            id="test_async.py::test_retries_method",
        ),
    ],
)
def test_method_gets_its_arguments_in_each_attempt(ask):
    """stamina: by id"""
    client = Client()

    assert ask(client) == 42

    assert client.callee.calls == [(("a",), {"key": 1})] * 2


def test_call_that_succeeds_neither_waits_nor_counts():
    """stamina: test_sync.py::test_ok
    resilience4j: SupplierRetryTest.shouldNotRetry
    """
    slept, callee = [], Callee(42)

    assert Retry(sleep=slept.append)(callee)() == 42

    assert len(callee.calls) == 1
    assert slept == []


def test_block_is_repeated_and_knows_its_number():
    """stamina: test_sync.py::test_retry_block"""
    numbers = []

    for attempt in Retry("block", AT_ONCE):
        with attempt:
            numbers.append(attempt.number)
            if attempt.number < 2:
                raise away()

    assert numbers == [1, 2]


def test_asynchronous_block_is_repeated():
    """stamina: test_async.py::test_retry_block"""
    numbers = []

    async def main():
        async for attempt in Retry("block", AT_ONCE):
            with attempt:
                numbers.append(attempt.number)
                if attempt.number < 2:
                    raise away()

    asyncio.run(main())

    assert numbers == [1, 2]


def test_block_tells_its_wait_once_the_attempt_is_over():
    """stamina: test_sync.py::test_next_wait

    Differs in that the wait is known after the attempt and not within it, since the error may ask
    for another one.
    """
    slept, waits = [], []

    for attempt in Retry("block", RetryParameters(cap_seconds=0.0001), sleep=slept.append):
        with attempt:
            within = attempt.wait_seconds
            if attempt.number == 1:
                raise away()
        waits.append((within, attempt.wait_seconds))

    assert waits == [(None, slept[0]), (None, None)]
    assert 0 <= slept[0] <= 0.0001


def test_retries_can_be_switched_off_and_on_again():
    """stamina: test_sync.py::test_retry_inactive
    stamina: test_sync.py::test_retry_inactive_block
    stamina: test_config.py::test_activate_deactivate

    Differs in that one retry is switched off and not those of the whole process; an operator does
    the same from the console.
    """
    retry = Retry("callee", AT_ONCE)
    callee = Callee(away())
    call = retry(callee)
    made = []

    def block():
        for attempt in retry:
            with attempt:
                callee()

    for attempts in (1, 3):
        retry.configure(RetryParameters(attempts=attempts, base_seconds=0))
        for ask in (call, block):
            with pytest.raises(ConnectionError):
                ask()
        made.append(len(callee.calls))

    assert made == [2, 8]


@pytest.mark.parametrize(
    ("attempts", "kind"), [(None, TypeError), (-1, ValueError), (0, ValueError)]
)
def test_endless_retries_are_refused(attempts, kind):
    """stamina: test_sync.py::test_ok

    Differs: None and what is below 1 mean no limit there. Here each call ends.
    """
    with pytest.raises(kind, match="attempts"):
        RetryParameters(attempts=attempts)


def items():
    yield 42
    raise away()


async def later_items():
    yield 42
    raise away()


@pytest.mark.parametrize("generator", [items, later_items])
def test_generator_is_not_retried(generator):
    """stamina: test_sync.py::TestGeneratorFunctionDecoration.test_retries_also_after_yields

    Differs: there the consumer gets the first items twice. Here a generator is refused when it is
    decorated.
    """
    with pytest.raises(TypeError, match="generator"):
        Retry("items")(generator)


PATTERNS = [
    pytest.param(Breaker("items"), id="breaker"),
    pytest.param(Bulkhead("items", BulkheadParameters(limit=1)), id="bulkhead"),
    pytest.param(Timeout(60), id="timeout"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_generator_gets_what_is_sent_and_gives_what_it_returns(pattern):
    """stamina: test_sync.py::TestGeneratorFunctionDecoration.test_forwards_send
    stamina: test_sync.py::TestGeneratorFunctionDecoration.test_wrapper_passes_through_return_value
    """

    @pattern
    def echo():
        sent = yield "ready"
        yield sent
        return "done"

    generator = echo()

    assert next(generator) == "ready"
    assert generator.send("hello") == "hello"
    with pytest.raises(StopIteration) as stopped:
        next(generator)
    assert stopped.value.value == "done"


@pytest.mark.parametrize("pattern", PATTERNS)
def test_generator_gets_what_is_thrown_in(pattern):
    """stamina: test_sync.py::TestGeneratorFunctionDecoration.test_forwards_throw

    Differs in that the generator does not begin again; one that handles the error goes on.
    """
    received, error = [], RuntimeError("boom")

    @pattern
    def patient():
        try:
            yield "ready"
        except RuntimeError as thrown:
            received.append(thrown)
            yield "went on"

    generator = patient()

    assert next(generator) == "ready"
    assert generator.throw(error) == "went on"
    assert received == [error]
    generator.close()


@pytest.mark.parametrize(
    ("backoff", "ceilings"),
    [
        pytest.param("linear", [1, 2, 3], id="Polly: RetryHelperTests.Linear_Ok"),
        pytest.param("exponential", [1, 2, 4], id="Polly: RetryHelperTests.Exponential_Ok"),
        pytest.param(
            "exponential",
            [1, 2, 4, 8, 16, 32],
            id="resilience4j: IntervalFunctionTest.generatesExponentialIntervals",
        ),
    ],
)
def test_pauses_grow(backoff, ceilings):
    """By id

    Differs in that these are ceilings: a pause is anything from nothing to them.
    """
    parameters = RetryParameters(backoff=backoff, base_seconds=1, cap_seconds=60)

    longest = [backoff_seconds(n, parameters, lambda: 1.0) for n in range(len(ceilings))]
    shortest = [backoff_seconds(n, parameters, lambda: 0.0) for n in range(len(ceilings))]

    assert longest == ceilings
    assert shortest == [0] * len(ceilings)


@pytest.mark.parametrize("backoff", ["linear", "exponential"])
@pytest.mark.parametrize("attempt", [1, 2, 3, 4, 10, 100, 1_000, 1_024, 1_025])
def test_pause_never_exceeds_its_cap(attempt, backoff):
    """Polly: RetryHelperTests.GetRetryDelay_Exponential_Does_Not_Exceed_MaxDelay
    Polly: RetryHelperTests.GetRetryDelay_OverflowWithMaxDelay_ReturnsMaxDelay
    stamina: test_sync.py::test_backoff_computation_clamps
    """
    parameters = RetryParameters(backoff=backoff, base_seconds=2, cap_seconds=30)

    longest = backoff_seconds(attempt, parameters, lambda: 1.0)

    assert longest == min(30, 2 * (attempt + 1 if backoff == "linear" else 2**attempt))


@pytest.mark.parametrize(
    ("seconds", "is_allowed"),
    [
        pytest.param(-0.001, False, id="shouldRejectNonPositiveDuration"),
        pytest.param(0, True, id="none"),
        pytest.param(0.01, True, id="shouldPassPositiveDuration"),
    ],
)
def test_negative_pause_is_refused(seconds, is_allowed):
    """resilience4j: IntervalFunctionTest, by id

    Differs in that a pause of nothing is allowed.
    """
    if is_allowed:
        assert RetryParameters(base_seconds=seconds).base_seconds == seconds
    else:
        with pytest.raises(ValueError, match="base_seconds"):
            RetryParameters(base_seconds=seconds)
