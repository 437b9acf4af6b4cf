"""Plain functions that return coroutines: what wraps them applies, or they are refused."""

import asyncio
import functools
import inspect

import pytest

from switchgear import Breaker, Bulkhead, CircuitOpen, Fallback, Policy, Refused, Retry, Timeout
from switchgear.guards import SwitchEngaged
from switchgear.patterns.caches import MemoryCache
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.parameters import BreakerParameters, RetryParameters
from switchgear.testing import Console

AT_ONCE = RetryParameters(base_seconds=0, attempts=3)
FIRST = BreakerParameters(failure_count=1)

PATTERNS = {
    "breaker": lambda: Breaker("a", FIRST),
    "retry": lambda: Retry("a", AT_ONCE),
    "timeout": lambda: Timeout(30),
    "no timeout": lambda: Timeout(None),
    "deadline": lambda: Deadline(30),
    "bulkhead": lambda: Bulkhead("a", "critical"),
    "fallback": lambda: Fallback("a", cache=MemoryCache(60), default="stood in"),
    "policy": lambda: Policy("a", retry=AT_ONCE, breaker=FIRST, fallback=lambda: "stood in"),
}


def checking(function):
    """Hands the coroutine on, as SDKs do that check arguments first."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


def ending(function):
    """Runs it to its end."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        return asyncio.run(function(*args, **kwargs))

    return call


async def works(number):
    return number


def test_policy_is_around_the_coroutine_that_a_decorated_function_hands_on():
    begun = []

    @checking
    async def create(question):
        begun.append(question)
        await asyncio.sleep(0)
        raise ConnectionError("down")

    policy = Policy(
        "a", retry=RetryParameters(attempts=2, base_seconds=0), fallback=Fallback("f", default="d")
    )
    guarded = policy(create)

    assert asyncio.run(_awaited(guarded, "hello")) == "d"
    assert begun == ["hello"] * 2
    assert policy.counters.counted()["failure"] == 2
    assert inspect.signature(guarded) == inspect.signature(create)


@pytest.mark.parametrize("name", ["breaker", "policy"])
def test_its_failures_open_the_breaker(name):
    @checking
    async def create():
        raise ConnectionError("down")

    pattern = Breaker("a", FIRST) if name == "breaker" else Policy("a", breaker=FIRST)
    guarded = pattern(create)

    async def story():
        with pytest.raises(ConnectionError):
            await guarded()
        with pytest.raises(CircuitOpen):
            await guarded()

    asyncio.run(story())


def test_timeout_cuts_it_off():
    @checking
    async def hangs():
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(_awaited(Policy("a", timeout_seconds=0.05)(hangs)))


def test_several_of_ours_around_it_all_hold():
    calls = []

    @Retry("a", AT_ONCE)
    @Breaker("a")
    @Timeout(30)
    @checking
    async def create(number):
        calls.append(number)
        if len(calls) < 3:
            raise ConnectionError
        return number

    assert asyncio.run(_awaited(create, 7)) == 7
    assert calls == [7] * 3


@pytest.mark.parametrize("name", PATTERNS)
def test_function_that_runs_its_coroutine_to_the_end_stays_plain(name):
    guarded = PATTERNS[name]()(ending(works))

    assert guarded(7) == 7
    assert not inspect.iscoroutinefunction(guarded)


@pytest.mark.parametrize("name", PATTERNS)
def test_and_one_that_hands_it_on_is_awaited(name):
    assert asyncio.run(_awaited(PATTERNS[name]()(checking(works)), 7)) == 7


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("function", [lambda: works(7), checking(works)], ids=["bare", "wrapped"])
def test_coroutine_that_comes_out_of_a_plain_function_is_refused_and_not_counted(name, function):
    pattern = PATTERNS[name]()
    args = () if function.__name__ == "<lambda>" else (7,)
    guarded = pattern(function)

    for _ in range(2):
        with pytest.raises(TypeError, match=r"works.*decorate a coroutine function"):
            guarded(*args)

    if getattr(pattern, "counters", None) is not None:
        counted = pattern.counters.counted()
        assert {name for name, much in counted.items() if much} <= {"total", "refused"}, counted


def test_coroutine_that_is_refused_is_closed():
    given = []

    def gives():
        given.append(works(7))
        return given[-1]

    with pytest.raises(Refused):
        Policy("a")(gives)()

    assert inspect.getcoroutinestate(given[0]) == inspect.CORO_CLOSED


def test_run_says_that_arun_is_meant():
    policy = Policy("a", fallback=lambda number: "stood in")

    with pytest.raises(TypeError, match="arun"):
        policy.run(works, 7)
    with pytest.raises(TypeError, match="arun"):
        Policy("a").run(works, 7)
    with pytest.raises(TypeError, match="arun"):
        Fallback("a", default=0).run(works, 7)


def test_method_that_hands_its_coroutine_on_is_protected():
    class Completions:
        answers = (ConnectionError(), "hello")

        @checking
        async def create(self, model):
            answer, *self.answers = self.answers
            if isinstance(answer, Exception):
                raise answer
            return answer + model

    assert asyncio.run(_awaited(Retry("a", AT_ONCE)(Completions().create), " m")) == "hello m"


def test_guard_asks_when_it_is_awaited():
    @checking
    async def create():
        return 7

    async def story():
        console = Console()
        gear = console.client(service="core")
        calls = [gear.guard(feature="chat")(create), gear.guard(feature=lambda: "chat")(create)]
        waiting = [call() for call in calls]
        console.engage("feature:chat", reason="a rehearsal")
        for each in waiting:
            with pytest.raises(SwitchEngaged):
                await each

    asyncio.run(story())


async def _awaited(function, *args):
    return await function(*args)
