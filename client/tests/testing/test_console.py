"""The console in memory: its clients follow every change at once, and need nothing else."""

import threading
from datetime import timedelta

import pytest

from switchgear.testing import Console, FakeClock


def test_clients_follow_each_change_at_once():
    console = Console()
    before = console.client()
    console.engage("feature:chat", reason="prompt injection reported")
    after = console.client()

    for client in (before, after):
        decision = client.check(feature="chat")
        assert (decision.allowed, decision.switch) == (False, "feature:chat")
        assert decision.reason == "prompt injection reported"
        assert decision.version == 1
        assert client.allowed(feature="search")

    console.release("feature:chat")
    assert before.allowed(feature="chat")
    assert after.allowed(feature="chat")


@pytest.mark.parametrize("is_engaged_first", [False, True])
def test_order_engages_without_a_new_version_until_the_switch_is_released(is_engaged_first):
    console = Console()
    client = console.client()

    order = console.order("feature:chat", reason="ordered while the console is down")
    decision = client.check(feature="chat")
    assert (decision.allowed, decision.version) == (False, 0)
    assert decision.reason == "ordered while the console is down"
    assert client.status().orders == (order,)

    if is_engaged_first:
        console.engage("feature:chat", reason="taken over")
        assert client.check(feature="chat").reason == "taken over"
        assert client.status().orders == ()
    console.release("feature:chat")
    assert client.allowed(feature="chat")
    assert client.status().orders == ()


def test_new_client_has_an_empty_snapshot():
    client = Console().client()

    assert client.check(feature="chat").known
    assert client.wait_ready(0)


def test_client_needs_no_thread_no_network_and_no_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = threading.active_count()
    console = Console()

    with console.client() as client:
        console.engage("feature:chat")
        assert not client.allowed(feature="chat")
        status = client.status()

    assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []
    assert (status.source, status.way, status.version) == ("console", "offline", 1)
    assert status.stopped == 1


def test_client_that_is_closed_follows_no_more():
    console = Console()
    client = console.client()
    client.close()

    console.engage("feature:chat")

    assert client.allowed(feature="chat")


def test_client_takes_the_arguments_of_any_client():
    client = Console().client(service="core", instance="a1", force_engaged=["segment:finance"])

    assert (client.status().service, client.status().instance) == ("core", "a1")
    assert not client.allowed(segment="finance")


def test_engaging_again_changes_reason_and_expiry():
    clock = FakeClock()
    console = Console(clock)
    client = console.client()
    console.engage("feature:chat", reason="first", expires_in=10, on_expiry="release")
    console.engage("feature:chat", reason="second", expires_in=60, on_expiry="release")

    clock.advance(40)

    assert client.check(feature="chat").reason == "second"


@pytest.mark.parametrize("expires_in", [60, 60.0, timedelta(minutes=1)])
def test_engagement_that_releases_itself_ends_five_seconds_past_its_expiry(expires_in):
    clock = FakeClock()
    console = Console(clock)
    client = console.client()
    console.engage("feature:chat", expires_in=expires_in, on_expiry="release")

    clock.advance(64)
    assert not client.allowed(feature="chat")
    clock.advance(2)

    assert client.allowed(feature="chat")


@pytest.mark.parametrize("switch", ["segment:finance", "feature:chat"])
def test_engagement_goes_on_past_its_expiry_as_usual(switch):
    clock = FakeClock()
    console = Console(clock)
    client = console.client()
    console.engage(switch, expires_in=60)

    clock.advance(7 * 86400)

    assert not client.allowed(segment="finance", feature="chat")


def test_keys_that_are_in_stay_in_as_a_ramp_grows_and_in_the_next_run_too():
    def those_in(console, percent):
        console.ramp("feature:chat", percent)
        client = console.client()
        return [n for n in range(400) if client.allowed(feature="chat", targeting_key=f"u{n}")]

    console = Console()
    console.engage("feature:chat")
    smaller, larger = those_in(console, 5), those_in(console, 60.25)

    assert 5 <= len(smaller) <= 40
    assert set(smaller) < set(larger)
    assert those_in(Console(), 5) == smaller


def test_engaging_a_ramping_switch_stops_everybody_again():
    console = Console()
    client = console.client()
    console.ramp("feature:chat", 99.99)
    assert client.allowed(feature="chat", targeting_key="kim")

    console.engage("feature:chat")

    assert not client.allowed(feature="chat", targeting_key="kim")


def test_global_alone_stops_everything():
    console = Console()
    client = console.client()

    console.engage("global")

    assert client.check().switch == "global:all"


def test_version_grows_with_each_change_only():
    console = Console()
    console.release("feature:chat")
    assert console.version == 0

    console.engage("feature:chat")
    console.ramp("feature:chat", 5)
    console.release("feature:chat")

    assert console.version == 3


def test_callbacks_hear_of_changes():
    console = Console()
    client = console.client()
    called = threading.Event()
    changes = []

    def callback(change):
        changes.append(change)
        called.set()

    end = client.on_change(callback, "feature:chat")
    console.engage("feature:search")
    console.engage("feature:chat")

    assert called.wait(10)
    end()
    client.close()
    assert [change.switch for change in changes] == ["feature:chat"]


@pytest.mark.parametrize(
    "switch", ["chat", "planet:mars", "feature:", "global:some", "", "feature:a b"]
)
def test_invalid_switch_is_refused(switch):
    console = Console()

    for act in (console.engage, console.release, lambda name: console.ramp(name, 5)):
        with pytest.raises(ValueError, match="is not a switch"):
            act(switch)


@pytest.mark.parametrize("percent", [0, 100, -1, 100.5, 0.001, float("nan")])
def test_share_that_no_ramp_can_have_is_refused(percent):
    with pytest.raises(ValueError, match="between 0 and 100"):
        Console().ramp("feature:chat", percent)


def test_clock_stands_still_until_it_is_advanced():
    clock = FakeClock(1000.0)
    assert (clock.monotonic(), clock.wall()) == (0.0, 1000.0)

    clock.advance(2.5)

    assert (clock.monotonic(), clock.wall()) == (2.5, 1002.5)
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1)
