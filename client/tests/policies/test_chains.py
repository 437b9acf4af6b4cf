"""The console's chain of providers, with what the code has for them."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear import CircuitOpen, Fallback, Policy
from switchgear.patterns.caches import MemoryCache
from switchgear.testing import Console

NAME = "oracle->openai"
CHAIN = [
    {"provider": "openai", "model": "gpt-4o", "role": "primary"},
    {"provider": "openai", "model": "gpt-4o-mini"},
    {"provider": "anthropic", "model": "claude"},
    {"error": "EXTERNAL_SERVICE_ERROR", "status": 502},
]


def primary(prompt):
    raise TimeoutError(prompt)


def openai(prompt, *, model):
    if model == "gpt-4o-mini":
        raise TimeoutError(prompt)
    return f"openai {model}: {prompt}"


def anthropic(prompt, *, model):
    return f"anthropic {model}: {prompt}"


PROVIDERS = {"openai": openai, "anthropic": anthropic}


@pytest.fixture
def console():
    return Console()


def test_chain_of_the_console_is_asked_in_order(console):
    policy = console.client().policy(NAME, providers=PROVIDERS)
    ask = policy(primary)
    with pytest.raises(TimeoutError):
        ask("hello")

    console.configure(NAME, {"fallback": {"mode": "provider", "chain": CHAIN}})
    assert ask("hello") == "anthropic claude: hello"
    answer = policy.run(primary, "hello")
    assert answer.causes == ("TimeoutError: hello",) * 2
    assert policy.counters.counted()["fallback"] == 2
    console.configure(NAME, {"fallback": {"chain": CHAIN[:1]}})
    with pytest.raises(TimeoutError):
        ask("hello")


def test_mode_none_switches_the_fallback_of_the_code_off(console):
    policy = console.client().policy(NAME, fallback=lambda prompt: "instead")
    ask = policy(primary)
    console.configure(NAME, {"fallback": {"mode": "error"}})
    assert ask("hello") == "instead"

    console.configure(NAME, {"fallback": {"mode": "none"}})
    with pytest.raises(TimeoutError):
        ask("hello")
    console.force(NAME, "forced_open")
    with pytest.raises(CircuitOpen):
        ask("hello")


def test_chain_that_does_not_suit_a_plain_function_leaves_it_as_it_was(console, caplog):
    async def later(prompt):
        return prompt

    policy = console.client().policy(NAME, providers={"anthropic": later}, timeout_seconds=3)
    ask = policy(lambda prompt: prompt)
    with caplog.at_level(logging.WARNING, "switchgear"):
        console.configure(NAME, {"fallback": {"chain": CHAIN}})
        assert [ask("hello") for _ in range(3)] == ["hello"] * 3

    assert sum("is unchanged" in one.getMessage() for one in caplog.records) == 1


@given(
    st.lists(
        st.none()
        | st.text(max_size=5)
        | st.dictionaries(
            st.sampled_from(["provider", "model", "only_if", "cache", "error", "status"]),
            st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["openai"]),
        ),
        max_size=5,
    )
)
def test_whatever_a_chain_says_a_call_that_succeeds_is_answered(chain):
    console = Console()
    ask = console.client().policy(NAME, providers=PROVIDERS)(lambda prompt: prompt)
    console.configure(NAME, {"fallback": {"chain": chain}})

    assert ask("hello") == "hello"


def failing(prompt):
    raise ConnectionError(prompt)


@pytest.mark.parametrize("chain", [[{"provider": "openai"}], ["a text for people"], [{"x": 1}]])
def test_chain_that_has_nothing_to_ask_leaves_the_fallback_of_the_code(console, chain):
    policy = console.client().policy(NAME, providers=PROVIDERS, fallback=lambda prompt: "instead")
    console.configure(NAME, {"fallback": {"mode": "cache", "chain": chain}})

    assert policy(primary)("hello") == "instead"
    assert policy.run(failing, "hello").source == "<lambda>"


def test_chain_ends_in_the_fallback_of_the_code(console):
    of_code = Fallback("mine", default="default", on=TimeoutError)
    policy = console.client().policy(NAME, providers={"openai": openai}, fallback=of_code)
    console.configure(NAME, {"fallback": {"chain": [CHAIN[0], CHAIN[1], CHAIN[3]]}})

    answer = policy.run(primary, "hello")

    assert (answer.value, answer.source, answer.is_partial) == ("default", "default", True)
    assert answer.causes == ("TimeoutError: hello",) * 2


def test_what_no_provider_is_worth_asking_for_is_for_the_fallback_of_the_code(console):
    class BadRequest(Exception):
        status_code = 400

    calls = []

    def refused(prompt):
        raise BadRequest(prompt)

    policy = console.client().policy(
        NAME, providers={"openai": primary, "anthropic": calls.append}, fallback=lambda: "instead"
    )
    console.configure(NAME, {"fallback": {"chain": [CHAIN[0], CHAIN[2]]}})

    assert policy.run(refused, "hello").value == "instead"
    assert calls == []


def test_switch_is_answered_only_by_what_says_so(console):
    gear, calls = console.client(), []
    policy = gear.policy(
        NAME,
        feature="chat",
        providers={"openai": primary, "anthropic": calls.append},
        fallback=Fallback("mine", lambda: "closed for today", on_switch=True),
    )
    console.configure(NAME, {"fallback": {"chain": [CHAIN[0], CHAIN[2]]}})
    console.engage("feature:chat")

    assert policy(lambda prompt: prompt)("hello") == "closed for today"
    assert calls == []


@pytest.mark.parametrize("is_given", [True, False])
def test_cache_of_a_chain_is_that_of_the_policy(console, is_given, caplog):
    cache, providers = MemoryCache(60), {"openai": primary}
    policy = (
        console.client().policy(NAME, providers=providers, cache=cache)
        if is_given
        else console.client().policy(NAME, providers=providers, fallback=Fallback(cache=cache))
    )
    console.configure(NAME, {"fallback": {"chain": [CHAIN[0], {"cache": "redis"}]}})
    answers = ["good"]

    @policy
    def ask(prompt):
        return answers.pop() if answers else primary(prompt)

    assert [ask("hello"), ask("hello")] == ["good", "good"]
    assert policy.fallback.count_answers() == {"cache": 1}
    assert "unknown cache" not in caplog.text
    with pytest.raises(TimeoutError):
        ask("something else")


def test_cache_alone_is_a_fallback():
    policy = Policy("a", cache=MemoryCache(60), fallback=None)
    answers = ["good"]

    def ask():
        return answers.pop() if answers else primary("")

    assert policy.run(ask).source == "call"
    assert policy.run(ask).source == "cache"


def test_cache_beside_a_whole_fallback_is_refused():
    with pytest.raises(ValueError, match="its cache"):
        Policy("a", cache=MemoryCache(60), fallback=Fallback("b", default=1))
