"""How Celery is set up: what beat sends where, and that losing it loses nothing."""

import pytest

from controlplane import celery
from controlplane.core import ticks


def test_beat_sends_every_tick_at_its_pace_to_a_queue_that_workers_read():
    queues = {queue.name for queue in celery.app.conf.task_queues}

    assert set(celery.app.conf.beat_schedule) == set(ticks.registered())
    for name, entry in celery.app.conf.beat_schedule.items():
        assert entry["args"] == [name]
        assert entry["schedule"] == entry["options"]["expires"] == ticks.registered()[name].seconds
        assert entry["options"]["queue"] in queues
        assert entry["task"] in celery.app.tasks


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
