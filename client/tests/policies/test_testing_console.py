"""A service's own tests: policies and overrides by a console in memory."""

import gc
import threading

import pytest

from switchgear import CircuitOpen, Switchgear
from switchgear.testing import Console, FakeClock
from tests.policies.policy_clients import NAME
from tests.wait_helpers import our_threads, wait_until


def test_policy_is_in_force_when_the_method_returns():
    console = Console()
    policy = console.client(service="core").policy(NAME, timeout_seconds=7)

    console.configure(NAME, {"timeout_ms": 500, "breaker": {"failure_threshold": 2}})
    assert policy.timeout_seconds == 0.5
    assert policy.breaker.parameters.failure_count == 2
    console.configure(NAME, None)
    assert policy.timeout_seconds == 7


def test_client_that_is_made_later_knows_it_too():
    console = Console()
    console.configure(NAME, {"timeout_ms": 500})
    console.configure("oracle->openai", {"timeout_ms": 700})
    client = console.client()

    assert client.policy(NAME).timeout_seconds == 0.5
    assert client.policy("oracle->openai").timeout_seconds == 0.7
    assert client.policy("core->synapse").timeout_seconds is None


def test_forced_breaker_refuses_until_it_is_unforced():
    console = Console()
    policy = console.client().policy(NAME, fallback=lambda: "instead")
    ask = policy(lambda: "itself")

    console.force(NAME, "forced_open")
    assert (ask(), policy.breaker.state) == ("instead", "open")
    console.configure(NAME, {"timeout_ms": 500})
    assert ask() == "instead"
    console.unforce(NAME)
    assert (ask(), policy.breaker.state) == ("itself", "closed")


def test_override_ends_when_the_clock_says_so():
    clock = FakeClock()
    console = Console(clock)
    client = console.client()
    breaker = client.breaker(NAME)
    before = set(threading.enumerate())

    console.force(NAME, "forced_open", expires_in=60)
    clock.advance(59)
    with pytest.raises(CircuitOpen):
        breaker.admit()
    clock.advance(1)
    breaker.admit()

    assert set(threading.enumerate()) <= before


def test_thread_that_ends_an_override_ends_with_its_client():
    console = Console()
    client = console.client()
    breaker = client.breaker(NAME)
    console.force(NAME, "forced_open", expires_in=3600)
    assert "switchgear-overrides" in our_threads()

    del client
    gc.collect()
    wait_until(lambda: "switchgear-overrides" not in our_threads())
    assert breaker.mode == "forced_open"


def test_override_ends_by_the_clock_of_the_machine_as_well():
    console = Console()
    client = console.client(service="core")
    breaker = client.breaker(NAME)
    console.force(NAME, "forced_open", expires_in=0.3)
    wait_until(lambda: breaker.mode == "normal")

    assert client.status().config_version == 1


def test_reset_closes_what_is_open_once():
    console = Console()
    console.configure(NAME, {"breaker": {"failure_count": 1}})
    client = console.client()
    breaker = client.breaker(NAME)
    breaker.fail(breaker.admit(), ValueError())

    console.reset(NAME)
    assert breaker.state == "closed"
    breaker.fail(breaker.admit(), ValueError())
    console.configure(NAME, {"breaker": {"failure_count": 1}, "timeout_ms": 5})
    assert breaker.state == "open"


@pytest.mark.parametrize(
    ("name", "policy"),
    [("core", {}), ("Core->oracle", {}), (NAME, {"timeout_ms": "fast"}), (NAME, {"retry": 3})],
)
def test_what_cannot_be_is_said_at_once(name, policy):
    console = Console()
    client = console.client()

    with pytest.raises(ValueError, match=name.partition("->")[0]):
        console.configure(name, policy)
    assert client.policy(NAME).timeout_seconds is None


def test_closed_client_follows_no_more():
    console = Console()
    client = console.client()
    policy = client.policy(NAME)
    client.close()

    console.configure(NAME, {"timeout_ms": 500})
    assert policy.timeout_seconds is None


def test_client_without_a_console_has_its_own_policies():
    with Switchgear(None) as client:
        assert client.policy(NAME)(lambda: 3)() == 3
        assert client.status().config_version is None
