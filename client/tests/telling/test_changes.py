"""Callbacks that are told which switches have changed."""

import asyncio
import json
import logging
import threading
import time
from datetime import UTC, datetime

import pytest

from switchgear.clock import ConsoleClock
from switchgear.deciding.memory import Memory
from switchgear.deciding.snapshot import read
from switchgear.following.announcer import Announcer, Change
from switchgear.testing import FakeClock
from tests.telling.waiting import our_threads, until

EPOCH = "6b1f6f0c-5a4e-4f9b-9f57-0f6d7c8f2f01"


class Told:
    """A memory that is given snapshots, and an announcer beside it."""

    def __init__(self):
        self.clock = FakeClock()
        self.memory = Memory(ConsoleClock(self.clock))
        self.announcer = Announcer(self.memory)
        self.version = 0

    def show(self, *rows):
        self.version += 1
        document = {"schema": 1, "epoch": EPOCH, "version": self.version, "switches": list(rows)}
        assert self.memory.accept(read(json.dumps(document).encode()))

    def expiry(self, seconds):
        return datetime.fromtimestamp(self.clock.wall() + seconds, UTC).isoformat()


@pytest.fixture
def told():
    made = Told()
    yield made
    made.announcer.stop()


def row(switch, state="engaged", percent=0, reason="a leak", **more):
    return {
        "id": switch,
        "state": state,
        "allow_percent": percent,
        "salt": "s",
        "reason": reason,
        **more,
    }


def test_engaged_switch_is_told_with_its_reason(told):
    heard = []
    told.announcer.add(heard.append, ())

    told.show(row("feature:chat"))

    until(lambda: heard)
    assert heard == [Change("feature:chat", "released", "engaged", "a leak", 0.0, 1)]


def test_each_step_from_engaged_to_released_is_told(told):
    heard = []
    told.show(row("feature:chat"))
    told.announcer.add(heard.append, ())

    for rows in (
        [row("feature:chat", "ramping", 5)],
        [row("feature:chat", "ramping", 25.5)],
        [],
    ):
        told.show(*rows)
        until(lambda: len(heard) == told.version - 1)

    assert [(one.before, one.after, one.allow_percent, one.version) for one in heard] == [
        ("engaged", "ramping", 5.0, 2),
        ("ramping", "ramping", 25.5, 3),
        ("ramping", "released", 100.0, 4),
    ]
    assert heard[-1].reason == "a leak"


def test_what_was_so_before_and_what_stays_is_not_told(told):
    heard = []
    told.show(row("feature:chat"))
    told.announcer.add(heard.append, ())

    told.show(row("feature:chat"), row("segment:finance"))

    until(lambda: heard)
    assert [one.switch for one in heard] == ["segment:finance"]


def test_callback_hears_only_of_the_switches_it_named(told):
    some, everything = [], []
    told.announcer.add(some.append, ["segment:finance"])
    told.announcer.add(everything.append, ())

    told.show(row("feature:chat"), row("segment:finance"))

    until(lambda: len(everything) == 2)
    assert [one.switch for one in some] == ["segment:finance"]


def test_callback_that_was_taken_away_hears_nothing_more(told):
    gone, there = [], []
    end = told.announcer.add(gone.append, ())
    told.announcer.add(there.append, ())
    end()
    end()

    told.show(row("feature:chat"))

    until(lambda: there)
    assert gone == []


def test_callback_that_raises_is_logged_and_the_others_are_told(told, caplog):
    def fail(change):
        raise SystemExit(change.switch)

    heard = []
    told.announcer.add(fail, ())
    told.announcer.add(heard.append, ())

    with caplog.at_level(logging.ERROR, "switchgear"):
        told.show(row("feature:chat"))
        until(lambda: len(heard) == 1)
        told.show()
        until(lambda: len(heard) == 2)

    assert len([one for one in caplog.records if "feature:chat" in one.getMessage()]) == 2


def test_what_happens_while_a_callback_is_busy_becomes_one_change(told):
    begun, may_go_on, heard = threading.Event(), threading.Event(), []

    def listen(change):
        heard.append(change)
        begun.set()
        may_go_on.wait(30)

    told.announcer.add(listen, ())
    told.show(row("feature:chat"))
    assert begun.wait(30)
    for percent in range(1, 100):
        told.show(row("feature:chat", "ramping", percent), row("feature:brief"))
    told.show(row("feature:chat", "ramping", 50))
    may_go_on.set()

    until(lambda: len(heard) == 2)
    told.show()
    until(lambda: len(heard) == 3)
    assert [(one.before, one.after, one.allow_percent) for one in heard] == [
        ("released", "engaged", 0.0),
        ("engaged", "ramping", 50.0),
        ("ramping", "released", 100.0),
    ]


def test_engagement_that_ends_by_itself_is_told_once(told):
    heard = []
    told.announcer.add(heard.append, ())
    brief = row("feature:chat", expires_at=told.expiry(60), on_expiry="release")
    held = row("segment:finance", expires_at=told.expiry(60), on_expiry="hold")
    told.show(brief, held)
    until(lambda: len(heard) == 2)

    told.clock.advance(64)
    told.announcer.look()
    time.sleep(0.05)
    assert len(heard) == 2
    told.clock.advance(1)

    until(lambda: len(heard) == 3)
    assert heard[2] == Change("feature:chat", "engaged", "released", "a leak", 100.0, 1)
    told.show(held)
    told.show()
    until(lambda: len(heard) == 4)
    assert (heard[3].switch, heard[3].version) == ("segment:finance", 3)


def test_switch_that_is_forced_here_is_told_without_a_snapshot(told):
    heard = []
    told.announcer.add(heard.append, ())

    told.memory.force("feature:chat", "a rehearsal")

    until(lambda: heard)
    assert heard == [Change("feature:chat", "released", "engaged", "a rehearsal", 0.0, None)]


def test_coroutine_function_runs_on_the_loop_it_was_given_on(told):
    async def serve():
        heard, threads = [], set()

        async def listen(change):
            await asyncio.sleep(0)
            threads.add(threading.current_thread())
            heard.append(change.after)

        told.announcer.add(listen, ())
        for rows in ([row("feature:chat")], []):
            await asyncio.to_thread(told.show, *rows)
            async with asyncio.timeout(30):
                while len(heard) < told.version:
                    await asyncio.sleep(0.01)
        return heard, threads == {threading.current_thread()}

    assert asyncio.run(serve()) == (["engaged", "released"], True)


def test_slow_coroutine_is_called_by_one_at_a_time(told):
    async def serve():
        heard, inside = [], []

        async def listen(change):
            inside.append(1)
            heard.append((len(inside), change.after))
            await asyncio.sleep(0.1)
            inside.pop()
            if change.after == "ramping":
                raise ValueError

        told.announcer.add(listen, ())
        for rows in ([row("feature:chat")], [row("feature:chat", "ramping", 5)], []):
            await asyncio.to_thread(told.show, *rows)
            await asyncio.sleep(0.05)
        async with asyncio.timeout(30):
            while heard[-1][1] != "released":
                await asyncio.sleep(0.01)
        return heard

    heard = asyncio.run(serve())

    assert {count for count, _ in heard} == {1}


def test_coroutine_function_without_a_loop_is_refused(told):
    async def listen(change): ...

    with pytest.raises(RuntimeError, match="event loop"):
        told.announcer.add(listen, ())


def test_changes_after_the_loop_was_closed_are_dropped_with_a_count(told):
    async def listen(change): ...

    async def serve():
        told.announcer.add(listen, ())

    asyncio.run(serve())
    heard = []
    told.announcer.add(heard.append, ())

    told.show(row("feature:chat"), row("feature:search"))
    until(lambda: len(heard) == 2)
    told.show()
    until(lambda: len(heard) == 4)

    assert told.announcer.dropped == 2


def test_stopped_announcer_has_no_thread_and_tells_nobody(told):
    heard = []
    told.announcer.add(heard.append, ())
    told.show(row("feature:chat"))
    until(lambda: heard)

    told.announcer.stop()
    told.show()
    told.announcer.add(heard.append, ())

    until(lambda: "switchgear-announcer" not in our_threads())
    assert len(heard) == 1


def test_callback_may_stop_what_calls_it(told):
    stopped = threading.Event()

    def listen(change):
        told.announcer.stop()
        stopped.set()

    told.announcer.add(listen, ())
    told.show(row("feature:chat"))

    assert stopped.wait(30)
