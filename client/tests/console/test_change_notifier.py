"""Callbacks that are told which switches have changed."""

import logging
import threading
import time

import pytest

from switchgear.console.change_notifier import Change
from tests.console.change_listeners import row
from tests.wait_helpers import our_threads, wait_until


def test_engaged_switch_is_told_with_its_reason(store):
    changes = []
    store.notifier.add(changes.append, ())

    store.show(row("feature:chat"))

    wait_until(lambda: changes)
    assert changes == [Change("feature:chat", "released", "engaged", "a leak", 0.0, 1)]


def test_each_step_from_engaged_to_released_is_told(store):
    changes = []
    store.show(row("feature:chat"))
    store.notifier.add(changes.append, ())

    for rows in (
        [row("feature:chat", "ramping", 5)],
        [row("feature:chat", "ramping", 25.5)],
        [],
    ):
        store.show(*rows)
        wait_until(lambda: len(changes) == store.version - 1)

    assert [(step.before, step.after, step.allow_percent, step.version) for step in changes] == [
        ("engaged", "ramping", 5.0, 2),
        ("ramping", "ramping", 25.5, 3),
        ("ramping", "released", 100.0, 4),
    ]
    assert changes[-1].reason == "a leak"


def test_what_was_so_before_and_what_stays_is_not_told(store):
    changes = []
    store.show(row("feature:chat"))
    store.notifier.add(changes.append, ())

    store.show(row("feature:chat"), row("segment:finance"))

    wait_until(lambda: changes)
    assert [one.switch for one in changes] == ["segment:finance"]


def test_callback_hears_only_of_the_switches_it_named(store):
    some, everything = [], []
    store.notifier.add(some.append, ["segment:finance"])
    store.notifier.add(everything.append, ())

    store.show(row("feature:chat"), row("segment:finance"))

    wait_until(lambda: len(everything) == 2)
    assert [one.switch for one in some] == ["segment:finance"]


def test_callback_that_was_taken_away_hears_nothing_more(store):
    gone, there = [], []
    end = store.notifier.add(gone.append, ())
    store.notifier.add(there.append, ())
    end()
    end()

    store.show(row("feature:chat"))

    wait_until(lambda: there)
    assert gone == []


def test_callback_that_raises_is_logged_and_the_others_are_told(store, caplog):
    def fail(change):
        raise SystemExit(change.switch)

    changes = []
    store.notifier.add(fail, ())
    store.notifier.add(changes.append, ())

    with caplog.at_level(logging.ERROR, "switchgear"):
        store.show(row("feature:chat"))
        wait_until(lambda: len(changes) == 1)
        store.show()
        wait_until(lambda: len(changes) == 2)

    assert len([one for one in caplog.records if "feature:chat" in one.getMessage()]) == 2


def test_what_happens_while_a_callback_is_busy_becomes_one_change(store):
    begun, may_go_on, changes = threading.Event(), threading.Event(), []

    def listen(change):
        changes.append(change)
        begun.set()
        may_go_on.wait(30)

    store.notifier.add(listen, ())
    store.show(row("feature:chat"))
    assert begun.wait(30)
    for percent in range(1, 100):
        store.show(row("feature:chat", "ramping", percent), row("feature:brief"))
    store.show(row("feature:chat", "ramping", 50))
    may_go_on.set()

    wait_until(lambda: len(changes) == 2)
    store.show()
    wait_until(lambda: len(changes) == 3)
    assert [(step.before, step.after, step.allow_percent) for step in changes] == [
        ("released", "engaged", 0.0),
        ("engaged", "ramping", 50.0),
        ("ramping", "released", 100.0),
    ]


def test_engagement_that_ends_by_itself_is_told_once(store):
    changes = []
    store.notifier.add(changes.append, ())
    brief = row("feature:chat", expires_at=store.expiry(60), on_expiry="release")
    held = row("segment:finance", expires_at=store.expiry(60), on_expiry="hold")
    store.show(brief, held)
    wait_until(lambda: len(changes) == 2)

    store.clock.advance(64)
    store.notifier.notify()
    time.sleep(0.05)
    assert len(changes) == 2
    store.clock.advance(1)

    wait_until(lambda: len(changes) == 3)
    assert changes[2] == Change("feature:chat", "engaged", "released", "a leak", 100.0, 1)
    store.show(held)
    store.show()
    wait_until(lambda: len(changes) == 4)
    assert (changes[3].switch, changes[3].version) == ("segment:finance", 3)


def test_switch_that_is_forced_here_is_told_without_a_snapshot(store):
    changes = []
    store.notifier.add(changes.append, ())

    store.store.force("feature:chat", "a rehearsal")

    wait_until(lambda: changes)
    assert changes == [Change("feature:chat", "released", "engaged", "a rehearsal", 0.0, None)]


def test_stopped_announcer_has_no_thread_and_tells_nobody(store):
    changes = []
    store.notifier.add(changes.append, ())
    store.show(row("feature:chat"))
    wait_until(lambda: changes)

    store.notifier.stop()
    store.show()
    store.notifier.add(changes.append, ())

    wait_until(lambda: "switchgear-notifier" not in our_threads())
    assert len(changes) == 1


def test_callback_may_stop_what_calls_it(store):
    stopped = threading.Event()

    def listen(change):
        store.notifier.stop()
        stopped.set()

    store.notifier.add(listen, ())
    store.show(row("feature:chat"))

    assert stopped.wait(30)


def test_switch_may_be_named_global_and_no_other_way(store):
    changes = []
    store.notifier.add(changes.append, ["global"])
    with pytest.raises(ValueError, match="feature;chat"):
        store.notifier.add(changes.append, ["feature;chat"])

    store.show(row("global:all"))

    wait_until(lambda: changes)
    assert changes[0].switch == "global:all"
