"""Beat's schedule: ticks sent and omitted at each second."""

import threading
from collections import Counter

import pytest

from controlplane.core import ticks
from controlplane.core.clock import db_now
from controlplane.core.models import Tick as TickRow
from controlplane.core.ticks import RegisteredTick
from controlplane.processes.schedule import Batch, IdleTicks, Schedule


def tick(name, seconds=1, queue="a", *, declares=False):
    pending = (lambda _now: []) if declares else None
    return RegisteredTick(name, seconds, queue, lambda _now: 0, pending)


def schedule(*given, idle=()):
    return Schedule({one.name: one for one in given}, lambda names: set(names) & set(idle))


def sent(subject, seconds):
    return Counter(
        name
        for passed in range(1, seconds + 1)
        for batch in subject.take(passed)
        for name in batch.names
    )


def test_each_tick_is_sent_at_its_pace():
    subject = schedule(tick("fast"), tick("slow", 10))

    assert sent(subject, 60) == {"fast": 60, "slow": 6}


def test_ticks_of_one_pace_and_queue_come_in_one_message():
    subject = schedule(tick("one", 5), tick("two", 5), tick("three", 5, "b"), tick("four", 10))

    assert [subject.take(passed) for passed in (4, 5)] == [
        [],
        [Batch("a", 5, ("one", "two")), Batch("b", 5, ("three",))],
    ]


def test_idle_tick_is_sent_once_a_minute():
    subject = schedule(tick("idle", declares=True), idle=["idle"])

    assert sent(subject, 180) == {"idle": 3}


def test_seconds_that_were_missed_are_made_up_for_once():
    subject = schedule(tick("fast"), tick("slow", 10))
    subject.take(1)

    assert [batch.names for batch in subject.take(35)] == [("fast",), ("slow",)]
    assert subject.take(35) == []


@pytest.mark.django_db(transaction=True)
def test_turn_of_an_idle_tick_is_recorded(monkeypatch):
    monkeypatch.setattr(ticks, "_registered", dict(ticks.list_ticks()))
    subject = IdleTicks(max_wait_seconds=10)
    subject.start()
    before = db_now()

    assert subject.find(["ramps.turn"]) == {"ramps.turn"}

    subject.stop()
    row = TickRow.objects.get(name="ramps.turn")
    assert row.ran_by == "beat"
    assert before <= row.ran_at <= db_now()


@pytest.mark.django_db(transaction=True)
def test_database_that_hangs_leaves_no_tick_out(monkeypatch):
    release, queried = threading.Event(), threading.Event()

    def hang(_now):
        queried.set()
        release.wait(10)
        return []

    monkeypatch.setattr(ticks, "_registered", {"stuck": RegisteredTick("stuck", 1, "a", len, hang)})
    subject = IdleTicks(max_wait_seconds=0.05)
    subject.start()

    try:
        assert subject.find(["stuck"]) == set()
        assert queried.wait(10)
        assert subject.find(["stuck"]) == set()
    finally:
        release.set()
        subject.stop()
