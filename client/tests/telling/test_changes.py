"""Callbacks that are told which switches have changed."""

import logging
import threading
import time

import pytest

from switchgear.console.change_notifier import Change
from tests.telling.changing import row
from tests.telling.waiting import our_threads, until


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
    told.announcer.notify()
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

    told.store.force("feature:chat", "a rehearsal")

    until(lambda: heard)
    assert heard == [Change("feature:chat", "released", "engaged", "a rehearsal", 0.0, None)]


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


def test_switch_may_be_named_global_and_no_other_way(told):
    heard = []
    told.announcer.add(heard.append, ["global"])
    with pytest.raises(ValueError, match="feature;chat"):
        told.announcer.add(heard.append, ["feature;chat"])

    told.show(row("global:all"))

    until(lambda: heard)
    assert heard[0].switch == "global:all"
