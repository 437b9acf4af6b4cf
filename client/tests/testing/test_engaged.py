"""`engaged`: switches are engaged for every client of the process within its block."""

import asyncio
import gc
import inspect
import threading

import pytest

from switchgear import SwitchEngaged, Switchgear
from switchgear.testing import Console, engaged


def test_switch_is_engaged_in_the_block_only_and_for_every_client():
    with Switchgear(None) as one, Switchgear(None, service="core") as other:
        with engaged("feature:chat", reason="a rehearsal"):
            assert [client.check(feature="chat").reason for client in (one, other)] == [
                "a rehearsal",
                "a rehearsal",
            ]
            assert one.allowed(feature="search")
        assert one.allowed(feature="chat")
        assert other.allowed(feature="chat")


def test_client_that_is_made_in_the_block_is_stopped_too():
    with engaged("feature:chat"):
        client = Switchgear(None)
        assert not client.allowed(feature="chat")

    assert client.allowed(feature="chat")
    client.close()


def test_client_that_is_closed_in_the_block_is_stopped_until_its_end():
    client = Switchgear(None)
    with engaged("feature:chat"):
        client.close()
        assert not client.allowed(feature="chat")

    assert client.allowed(feature="chat")
    with engaged("feature:chat"):
        assert not client.allowed(feature="chat")


def test_several_switches_are_engaged_at_once():
    with Switchgear(None) as client, engaged("feature:chat", "segment:finance", "global"):
        assert client.check(feature="chat").switch == "global:all"
        assert set(client.status().forced) == {"feature:chat", "segment:finance", "global:all"}


def test_blocks_are_nested_and_the_inner_reason_counts():
    with Switchgear(None) as client:
        with engaged("feature:chat", reason="outer"):
            with engaged("feature:chat", reason="inner"):
                assert client.check(feature="chat").reason == "inner"
            assert client.check(feature="chat").reason == "outer"
        assert client.allowed(feature="chat")


def test_blocks_overlap_and_the_last_one_left_releases():
    first, second = engaged("feature:chat", reason="first"), engaged("feature:chat")
    with Switchgear(None) as client:
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert not client.allowed(feature="chat")
        second.__exit__(None, None, None)
        assert client.allowed(feature="chat")


def test_overlapping_blocks_of_threads_release_all_switches():
    with Switchgear(None) as client:
        states = []

        def rehearse():
            for _ in range(50):
                with engaged("feature:chat"):
                    states.append(client.allowed(feature="chat"))

        threads = [threading.Thread(target=rehearse) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert states == [False] * 300
        assert client.allowed(feature="chat")
        assert client.status().forced == ()


def test_switch_forced_before_the_block_stays_forced():
    with Switchgear(None, force_engaged=["feature:chat"]) as client:
        with engaged("feature:chat", reason="a rehearsal"):
            assert client.check(feature="chat").reason == "a rehearsal"

        assert client.check(feature="chat").reason == "SWITCHGEAR_FORCE_ENGAGED"


def test_console_decides_again_after_the_block():
    console = Console()
    client = console.client()
    console.engage("feature:chat", reason="the console's")

    with engaged("feature:chat", "feature:search"):
        console.release("feature:chat")
        console.engage("feature:search", reason="the console's")
        assert not client.allowed(feature="chat")

    assert client.allowed(feature="chat")
    assert client.check(feature="search").reason == "the console's"


def test_block_that_fails_releases():
    with Switchgear(None) as client:
        with pytest.raises(ZeroDivisionError), engaged("feature:chat"):
            raise ZeroDivisionError

        assert client.allowed(feature="chat")


GEAR = Console().client()


@GEAR.guard(feature="chat")
def ask(question: str) -> str:
    return question


@engaged("feature:chat")
def test_decorated_test_runs_while_the_switch_is_engaged(tmp_path):
    assert tmp_path.is_dir()  # Fixtures are still found by the names of the arguments.
    with pytest.raises(SwitchEngaged):
        ask("hello")


@pytest.fixture(name="stopped")
@engaged("feature:chat")
def _stopped():
    yield
    assert not GEAR.allowed(feature="chat")  # Not before the test that uses it is over.


def test_decorated_fixture_engages_for_the_test_that_uses_it(stopped):
    with pytest.raises(SwitchEngaged):
        ask("hello")


def test_no_switch_is_engaged_after_the_blocks():
    assert ask("hello") == "hello"


def test_decorated_coroutine_function_runs_while_the_switch_is_engaged():
    @engaged("feature:chat")
    async def story():
        await asyncio.sleep(0)
        return GEAR.allowed(feature="chat")

    assert inspect.iscoroutinefunction(story)
    begun = story()
    assert GEAR.allowed(feature="chat")
    assert asyncio.run(begun) is False
    assert GEAR.allowed(feature="chat")


def test_client_that_was_let_go_in_the_block_does_no_harm():
    with engaged("feature:chat"):
        client = Switchgear(None)
        del client
        gc.collect()


@pytest.mark.parametrize("switches", [(), ("chat",), ("feature:chat", "nonsense:x")])
def test_invalid_switch_is_refused(switches):
    with pytest.raises(ValueError, match="switch"):
        engaged(*switches)
    assert GEAR.status().forced == ()
