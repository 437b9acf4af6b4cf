"""A kill during a fallback stops every source that has not begun."""

import asyncio
import threading

import pytest

from switchgear import CircuitOpen, Fallback, Policy, SwitchEngaged, cancellation
from switchgear.patterns.answers import latest_answer
from switchgear.patterns.caches import MemoryCache
from tests.patterns.failing_calls import Down

NAME = "core->model"
CHAIN = [{"provider": "openai"}, {"provider": "anthropic"}, {"provider": "ollama"}]


class Calls:
    """Functions that record their calls; one that `engages` engages the switch, then fails."""

    def __init__(self, console):
        self.console = console
        self.names = []

    def failing(self, name, *, engages=False):
        def call():
            self.names.append(name)
            if engages:
                self.console.engage("feature:chat", reason="leak in the answers")
            raise Down(name)

        call.__name__ = name
        return call

    def answering(self, name):
        def call():
            self.names.append(name)
            return name

        call.__name__ = name
        return call

    def awaited(self, function):
        async def call():
            await asyncio.sleep(0)
            return function()

        call.__name__ = function.__name__
        return call


class Spy(MemoryCache):
    def __init__(self):
        super().__init__(60)
        self.reads = 0

    def get_aged(self, key):
        self.reads += 1
        return "of before", 1.0


@pytest.fixture
def calls(console):
    return Calls(console)


def assert_stopped_after(name, raised):
    assert raised.value.switch == "feature:chat"
    assert isinstance(raised.value.__cause__, Down)
    assert str(raised.value.__cause__) == name
    assert latest_answer() is None


def test_target_is_not_called_once_an_outer_guard_stops_the_call(gear, calls):
    cache = Spy()
    fallback = Fallback("a", calls.answering("second"), cache=cache, default="nothing")

    @gear.guard(feature="chat")
    @fallback
    def ask():
        return calls.failing("call", engages=True)()

    with pytest.raises(SwitchEngaged) as raised:
        ask()

    assert_stopped_after("call", raised)
    assert calls.names == ["call"]
    assert cache.reads == 0
    assert fallback.count_answers() == {}


def test_target_is_not_called_once_an_outer_block_is_stopped(gear, calls):
    fallback = Fallback("a", calls.answering("second"), default="nothing")

    with gear.guard(feature="chat"), pytest.raises(SwitchEngaged) as raised:
        fallback.run(calls.failing("call", engages=True))

    assert_stopped_after("call", raised)


def test_kill_during_the_first_target_skips_the_second(gear, calls):
    policy = gear.policy(
        NAME,
        feature="chat",
        fallback=Fallback(
            "a",
            calls.failing("first", engages=True),
            calls.answering("second"),
            default="nothing",
        ),
    )
    ask = policy(calls.failing("call"))

    with pytest.raises(SwitchEngaged) as raised:
        ask()

    assert_stopped_after("first", raised)
    assert calls.names == ["call", "first"]


@pytest.mark.parametrize("is_run", [False, True])
def test_policy_guard_is_rechecked_before_each_target(gear, calls, is_run):
    policy = gear.policy(NAME, feature="chat", fallback=calls.answering("second"))
    call = calls.failing("call", engages=True)

    with pytest.raises(SwitchEngaged) as raised:
        policy.run(call) if is_run else policy(call)()

    assert_stopped_after("call", raised)
    assert calls.names == ["call"]


@pytest.mark.parametrize("is_run", [False, True])
def test_policy_guard_of_coroutines_is_rechecked_before_each_target(gear, calls, is_run):
    policy = gear.policy(NAME, feature="chat", fallback=calls.awaited(calls.answering("second")))
    call = calls.awaited(calls.failing("call", engages=True))

    with pytest.raises(SwitchEngaged) as raised:
        asyncio.run(policy.arun(call) if is_run else policy(call)())

    assert isinstance(raised.value.__cause__, Down)
    assert calls.names == ["call"]


def test_switches_are_rechecked_by_the_keys_of_the_call(console, gear):
    policy = gear.policy(
        NAME, segment=lambda department: department, fallback=lambda department: "instead"
    )

    @policy
    def ask(department):
        console.engage("segment:finance")
        raise Down("away")

    assert ask("sales") == "instead"
    console.release("segment:finance")
    with pytest.raises(SwitchEngaged):
        ask("finance")


def test_fallback_for_switches_skips_the_guard_of_its_own_policy(gear, calls):
    policy = gear.policy(
        NAME, feature="chat", on_switch=True, fallback=calls.answering("closed for today")
    )

    answer = policy.run(calls.failing("call", engages=True))

    assert answer.value == "closed for today"


def test_fallback_for_switches_does_not_skip_guards_around(gear, calls):
    policy = gear.policy(NAME, on_switch=True, fallback=calls.answering("closed for today"))

    @gear.guard(feature="chat")
    def page():
        return policy.run(calls.failing("call", engages=True))

    with pytest.raises(SwitchEngaged):
        page()
    assert calls.names == ["call"]


def test_default_of_a_block_does_not_stand_in_once_a_guard_around_stops_it(gear, calls):
    fallback = Fallback("a", default="nothing")

    with (
        pytest.raises(SwitchEngaged) as raised,
        gear.guard(feature="chat"),
        fallback.catching() as held,
    ):
        calls.failing("block", engages=True)()

    assert isinstance(raised.value.__cause__, Down)
    assert (held.value, held.answer) == (None, None)


def test_default_alone_does_not_stand_in_for_a_killed_call(gear, calls):
    policy = gear.policy(NAME, feature="chat", fallback=Fallback("a", default="nothing"))

    with pytest.raises(SwitchEngaged):
        policy.run(calls.failing("call", engages=True))


def test_fallback_answers_for_the_policys_own_forced_breaker(console, gear, calls):
    policy = gear.policy(NAME, feature="chat", fallback=calls.answering("second"))
    console.force(NAME, "forced_open")

    answer = policy.run(calls.answering("call"))

    assert answer.value == "second"
    assert calls.names == ["second"]


def test_target_that_is_a_policy_asks_its_own_breaker(console, gear, calls):
    other = gear.policy("core->other")
    console.force("core->other", "forced_open")
    policy = gear.policy(NAME, feature="chat", fallback=other(calls.answering("second")))

    with pytest.raises(Down) as raised:
        policy.run(calls.failing("call"))

    assert "breaker of core->other is open" in raised.value.__notes__[0]
    assert calls.names == ["call"]


def test_forced_breaker_of_a_call_around_refuses_the_targets(calls):
    class Forced:
        def refusal(self):
            return CircuitOpen("page->core")

        def subscribe(self, callback):
            return lambda: None

    scope = cancellation.enter(Forced())
    try:
        with pytest.raises(CircuitOpen):
            Fallback("a", calls.answering("second")).run(calls.failing("call"))
    finally:
        cancellation.leave(scope)

    assert calls.names == ["call"]


def test_chain_of_the_console_asks_no_provider_after_the_kill(console, gear, calls):
    policy = gear.policy(
        NAME,
        feature="chat",
        providers={
            "openai": calls.failing("openai"),
            "anthropic": calls.failing("anthropic", engages=True),
            "ollama": calls.answering("ollama"),
        },
    )
    console.configure(NAME, {"fallback": {"chain": CHAIN}})

    with pytest.raises(SwitchEngaged) as raised:
        policy.run(calls.failing("openai"))

    assert_stopped_after("anthropic", raised)
    assert calls.names == ["openai", "anthropic"]


def test_only_fallbacks_on_switches_answer_after_a_kill_in_a_chain(console, gear, calls):
    policy = gear.policy(
        NAME,
        feature="chat",
        providers={
            "anthropic": calls.failing("anthropic", engages=True),
            "ollama": calls.answering("ollama"),
        },
        fallback=Fallback("mine", calls.answering("closed for today"), on_switch=True),
    )
    console.configure(NAME, {"fallback": {"chain": CHAIN}})

    answer = policy.run(calls.failing("openai"))

    assert answer.value == "closed for today"
    assert calls.names == ["openai", "anthropic", "closed for today"]


def test_target_that_waits_is_woken_and_refused_by_the_kill(console, gear):
    waiting = threading.Event()

    def waits():
        waiting.set()
        cancellation.sleep(60)

    def engages():
        waiting.wait(30)
        console.engage("feature:chat")

    policy = gear.policy(NAME, feature="chat", fallback=Fallback("a", waits, default="nothing"))
    thread = threading.Thread(target=engages)
    thread.start()

    with pytest.raises(SwitchEngaged):
        policy.run(Calls(console).failing("call"))
    thread.join(30)
    assert cancellation.current_scope.get() is None


def test_target_in_flight_is_cancelled_where_the_guard_says_so(console, gear):
    ended = []

    async def hangs():
        try:
            console.engage("feature:chat")
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def fails():
        raise Down("away")

    async def scene():
        guard = gear.guard(feature="chat", on_engage="cancel")
        policy = Policy(NAME, guard=guard, fallback=hangs)
        with pytest.raises(SwitchEngaged):
            await policy.arun(fails)
        assert asyncio.current_task().cancelling() == 0

    asyncio.run(scene())
    assert ended == ["cancelled"]


def test_interrupted_target_leaves_no_switch_behind(gear, calls):
    def interrupted():
        raise KeyboardInterrupt

    policy = gear.policy(NAME, feature="chat", fallback=interrupted)

    with pytest.raises(KeyboardInterrupt):
        policy.run(calls.failing("call"))

    assert cancellation.current_scope.get() is None


def test_call_with_failing_key_functions_is_not_answered(gear, calls):
    policy = gear.policy(NAME, segment=lambda: {}["department"], fallback=calls.answering("second"))

    with pytest.raises(KeyError, match="department"):
        policy.run(calls.answering("call"))

    assert calls.names == []


def test_kill_of_another_switch_is_ignored(console, gear, calls):
    policy = gear.policy(NAME, feature="search", fallback=calls.answering("second"))

    assert policy.run(calls.failing("call", engages=True)).value == "second"
