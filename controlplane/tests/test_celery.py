"""How Celery is set up: what beat sends where, and that losing it loses nothing."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from celery import beat

from controlplane import celery
from controlplane.core import ticks


def test_beat_sends_every_tick_at_its_pace_to_a_queue_that_workers_read():
    queues = {queue.name for queue in celery.app.conf.task_queues}

    assert set(celery.app.conf.beat_schedule) == set(ticks.registered())
    for name, entry in celery.app.conf.beat_schedule.items():
        assert entry["args"] == [name]
        seconds = ticks.registered()[name].seconds
        assert entry["schedule"].seconds == entry["options"]["expires"] == seconds
        assert entry["options"]["queue"] in queues
        assert entry["task"] in celery.app.tasks


@pytest.mark.parametrize("step", [timedelta(minutes=-20), timedelta(minutes=20)])
def test_local_clock_that_is_set_changes_nothing_of_what_beat_sends_when(step):
    entries = [
        beat.ScheduleEntry(name=name, app=celery.app, schedule=entry["schedule"])
        for name, entry in celery.app.conf.beat_schedule.items()
    ]

    with time_machine.travel(datetime.now(UTC) + step):
        waits = {entry.name: entry.is_due().next for entry in entries}

    for name, wait in waits.items():
        seconds = ticks.registered()[name].seconds
        assert seconds - 5 < wait <= seconds


def test_a_task_looked_up_anywhere_belongs_to_this_app():
    from celery import current_app

    assert current_app.conf.broker_url == celery.app.conf.broker_url
    assert celery.app.conf.result_backend is None


@pytest.mark.parametrize(
    ("redis_url", "expected"),
    [
        ("redis://:secret@cache:6379/2", "redis://:secret@cache:6379/2"),
        ("rediss://cache:6379/2", "rediss://cache:6379/2"),
        ("unix:///run/redis.sock", "redis+socket:///run/redis.sock?virtual_host=0"),
        ("unix:///run/redis.sock?db=3", "redis+socket:///run/redis.sock?virtual_host=3"),
        ("unix://:a%2Fb@/run/redis.sock", "redis+socket://:a%2Fb@/run/redis.sock?virtual_host=0"),
        (
            "unix:///run/redis.sock?password=a%2Fb",
            "redis+socket://:a%2Fb@/run/redis.sock?virtual_host=0",
        ),
    ],
)
def test_a_socket_is_spelled_as_the_broker_library_wants_it(redis_url, expected):
    assert celery.broker_url(redis_url) == expected
