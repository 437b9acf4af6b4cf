"""A bulkhead with an adaptive limit; calls of a fixed one are not measured."""

import asyncio
import threading
from contextlib import suppress

import httpx
import pytest

from switchgear.adapters.http_requests import Patterns
from switchgear.adapters.httpx import AsyncTransport, Transport
from switchgear.failures.error_labels import http_status
from switchgear.patterns.adaptive_limit import LimitRange
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.limit_controller import LimitController, is_overload_outcome
from switchgear.patterns.parameters import BreakerParameters, BulkheadParameters
from switchgear.patterns.permits import PermitPool, Waiter
from switchgear.patterns.timeout import CallTimeout
from switchgear.policies.policy import Policy
from switchgear.refusals import BulkheadFull, CircuitOpen
from switchgear.testing import Console
from tests.patterns.clocks import Clock

CALLS = 40
"""More than a window has."""
NEVER_OPEN = BreakerParameters(failure_count=1000, window_size=1000)
ADAPTIVE = BulkheadParameters(limit=16, mode="adaptive")


class Answer:
    def __init__(self, status_code):
        self.status_code = status_code


class RateLimited(Exception):
    status_code = 429


def measured(**bounds):
    """Return a controller with a clock of its own, and a pool with most permits in use."""
    clock = Clock()
    permits = PermitPool(None)
    limits = LimitRange(initial=16, **{"min_limit": 1, "max_limit": 100, **bounds})
    controller = LimitController(permits, limits, clock)
    permits.configure(ADAPTIVE, controller)
    for _ in range(12):
        assert permits.acquire()
    return controller, permits, clock


def calls(controller, permits, clock, outcome, seconds=0.1, count=CALLS):
    for _ in range(count):
        assert permits.acquire()
        permit = controller.begin_call(permits)
        clock.goes(seconds)
        permit.release(None, outcome)


@pytest.mark.parametrize(
    "outcome",
    [TimeoutError(), CallTimeout(1), RateLimited(), Answer(503), Answer(429)],
)
def test_overload_lowers_the_limit(outcome):
    controller, permits, clock = measured()

    calls(controller, permits, clock, outcome, count=20)

    assert permits.occupancy().limit == 8
    assert permits.occupancy().in_flight == 12


def test_calls_that_do_well_raise_it_while_it_is_used():
    controller, permits, clock = measured()

    calls(controller, permits, clock, Answer(200), count=20)
    raised = permits.occupancy().limit
    for _ in range(9):
        permits.release()
    calls(controller, permits, clock, Answer(200))

    assert raised == 18
    assert permits.occupancy().limit == 18


@pytest.mark.parametrize(
    "outcome",
    [
        asyncio.CancelledError(),
        CircuitOpen("a"),
        BulkheadFull("a", "limit of 1"),
        ValueError("mistake"),
        KeyboardInterrupt(),
        SystemExit(503),
    ],
)
def test_outcomes_unrelated_to_load_do_not_change_the_limit(outcome):
    controller, permits, clock = measured()

    calls(controller, permits, clock, outcome, count=500)

    assert permits.occupancy().limit == 16
    assert not is_overload_outcome(outcome)


def test_replaced_controller_no_longer_changes_the_limit():
    controller, permits, clock = measured()
    permits.configure(BulkheadParameters(limit=5))

    for _ in range(CALLS):
        controller.record(clock(), True, TimeoutError())
        clock.goes(0.1)

    assert permits.occupancy().limit == 5


def hung(bulkhead, kind):
    """Record calls that time out one after another, while most permits are held."""

    @bulkhead
    def plain():
        raise TimeoutError

    @bulkhead
    async def coroutine():
        raise TimeoutError

    @bulkhead
    def stream():
        yield 1
        raise TimeoutError

    def block():
        with bulkhead:
            raise TimeoutError

    def place():
        with bulkhead.of(key=7):
            raise TimeoutError

    return {
        "plain": plain,
        "coroutine": lambda: asyncio.run(coroutine()),
        "stream": lambda: list(stream()),
        "block": block,
        "place": place,
    }[kind]


@pytest.mark.parametrize("kind", ["plain", "coroutine", "stream", "block", "place"])
def test_every_kind_of_call_is_measured(kind):
    bulkhead = Bulkhead("llm", ADAPTIVE)
    held = [bulkhead.acquire() for _ in range(12)]
    window = threading.Event()

    call = hung(bulkhead, kind)
    for number in range(20):
        if number == 19:
            window.wait(0.11)  # A window lasts that long at least.
        with pytest.raises(TimeoutError):
            call()

    assert bulkhead.look().limit == 8
    with pytest.raises(BulkheadFull, match="limit of 8"):
        call()
    for permit in held:
        permit.release()
    assert bulkhead.look().in_flight == 0


def over_http(bulkhead, answer):
    """Return functions that send a request by the sync and by the async transport."""

    def respond(request):
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer)

    patterns, inner = Patterns(bulkhead=bulkhead, retry=None), httpx.MockTransport(respond)

    def send():
        with httpx.Client(transport=Transport(patterns, inner)) as client:
            return client.get("http://oracle/")

    async def asend():
        async with httpx.AsyncClient(transport=AsyncTransport(patterns, inner)) as client:
            return await client.get("http://oracle/")

    return send, lambda: asyncio.run(asend())


@pytest.mark.parametrize("answer", [503, httpx.ReadTimeout("late")])
@pytest.mark.parametrize("kind", [0, 1], ids=["transport", "asynchronous"])
def test_requests_over_httpx_are_measured_by_status_and_error(answer, kind):
    bulkhead = Bulkhead("llm", ADAPTIVE)
    held = [bulkhead.acquire() for _ in range(12)]
    send = over_http(bulkhead, answer)[kind]

    for number in range(20):
        if number == 19:
            threading.Event().wait(0.11)
        with suppress(httpx.ReadTimeout):
            send()

    assert bulkhead.look().limit == 8
    assert bulkhead.look().in_flight == len(held)


def test_a_policy_with_keys_is_measured():
    policy = Policy("a", bulkhead=ADAPTIVE, key=lambda user: user, breaker=NEVER_OPEN)
    held = [policy.bulkhead.acquire() for _ in range(12)]

    @policy
    def ask(user):
        return Answer(503)

    for number in range(20):
        if number == 19:
            threading.Event().wait(0.11)
        ask(number)

    assert policy.bulkhead.look().limit == 8
    assert len(held) == 12


def test_a_decorated_function_that_returns_503_is_measured_too():
    bulkhead = Bulkhead("llm", ADAPTIVE)
    held = [bulkhead.acquire() for _ in range(12)]

    @bulkhead
    def ask():
        return Answer(503)

    for number in range(20):
        if number == 19:
            threading.Event().wait(0.11)
        assert http_status(ask()) == 503

    assert bulkhead.look().limit == 8
    assert len(held) == 12


def test_calls_that_wait_are_admitted_when_the_limit_grows():
    clock, permits = Clock(), PermitPool(None)
    limits = LimitRange(initial=2, min_limit=1, max_limit=10)
    controller = LimitController(permits, limits, clock)
    permits.configure(BulkheadParameters(limit=2, queue=5), controller)
    assert permits.acquire()
    assert permits.acquire()
    waiter = Waiter(None, 0, lambda: None)
    assert permits.enqueue(waiter) == "waiting"

    for _ in range(20):
        clock.goes(0.1)
        controller.record(clock(), True, None)

    assert permits.occupancy().limit == 3
    assert waiter.state == "admitted"


def test_without_bounds_it_stays_from_a_quarter_to_four_times_the_limit():
    assert ADAPTIVE.limit_range == LimitRange(initial=16, min_limit=4, max_limit=64)
    assert BulkheadParameters(limit=1, mode="adaptive").limit_range.min_limit == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "magic"},
        {"min_limit": 0},
        {"min_limit": 17},
        {"max_limit": 15},
    ],
)
def test_bounds_that_cannot_be_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BulkheadParameters(limit=16, **wrong)


def test_the_console_makes_it_adaptive_and_fixed_again():
    console = Console()
    gear = console.client(service="core")
    policy = gear.policy("core->oracle", bulkhead=BulkheadParameters(limit=3))
    begun = threading.Event()

    @policy
    def ask():
        begun.set()

    document = {"limit": 16, "mode": "adaptive", "min_limit": 2, "max_limit": 40}
    console.configure("core->oracle", {"bulkhead": document})
    ask()
    parameters = policy.bulkhead.parameters
    console.configure("core->oracle", {"bulkhead": {"limit": 5, "mode": None, "min_limit": None}})

    assert begun.is_set()
    assert parameters.limit_range == LimitRange(initial=16, min_limit=2, max_limit=40)
    assert policy.bulkhead.parameters == BulkheadParameters(limit=5)
    assert policy.bulkhead.look().limit == 5
