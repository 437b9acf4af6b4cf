"""Celery's configuration: beat's messages, queues, and that a lost message is harmless."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from celery import beat, current_app

from controlplane import celery
from controlplane.core import ticks


def test_every_tick_goes_to_a_queue_that_workers_read():
    queues = {queue.name for queue in celery.app.conf.task_queues}

    assert {tick.queue for tick in ticks.list_ticks().values()} <= queues


def test_beat_looks_each_second_for_ticks_that_are_due():
    (entry,) = celery.app.conf.beat_schedule.values()

    assert entry["schedule"].seconds == 1
    assert entry["task"] in celery.app.tasks


@pytest.mark.parametrize("step", [timedelta(minutes=-20), timedelta(minutes=20)])
def test_local_clock_that_is_set_changes_nothing_of_what_beat_sends_when(step):
    (given,) = celery.app.conf.beat_schedule.values()
    entry = beat.ScheduleEntry(name="ticks", app=celery.app, schedule=given["schedule"])

    with time_machine.travel(datetime.now(UTC) + step):
        wait = entry.is_due().next

    assert 0 < wait <= 1


def test_task_looked_up_in_another_thread_belongs_to_this_app():
    """The lookup runs in another thread, as an example may have set its own app in this one."""
    with ThreadPoolExecutor(1) as another:
        found = another.submit(lambda: current_app.conf.broker_url).result()

    assert found == celery.app.conf.broker_url
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
