"""The console's chain of providers, with what the code has for them."""

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchgear import CircuitOpen
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

    assert sum("stays as it was" in one.getMessage() for one in caplog.records) == 1


@settings(deadline=None, max_examples=100)
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
