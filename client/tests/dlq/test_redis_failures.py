"""Servers that go away, are full, or are a cluster; workers that are killed."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import redis
import redis.asyncio

from switchgear.dlq import AsyncConsumer, Consumer
from switchgear.generator_steps import run_effects
from tests.dlq.consumers import failing
from tests.dlq.streams import GROUP, URL, Stream
from tests.redis_servers import cluster, server
from tests.wait_helpers import wait_until

CLIENT = Path(__file__).parents[2]
KILLED = """
import os, signal, sys
import redis
from switchgear.dlq import Consumer

def handler(message):
    if message.fields["n"] == "poison":
        os.kill(os.getpid(), signal.SIGKILL)

client = redis.Redis.from_url(sys.argv[1])
consumer = Consumer(
    redis=client, handler=handler, stream=sys.argv[2], group="synapse", idle_seconds=0.1
)
for _ in range(20):
    consumer.step(0.02)
"""


def test_a_message_that_kills_its_workers_is_given_up_and_takes_no_other_along(stream):
    for n in ("first", "poison", "last"):
        stream.add(n=n)

    ends = [
        subprocess.run([sys.executable, "-c", KILLED, URL, stream.name], cwd=CLIENT).returncode
        for _ in range(4)
    ]

    assert ends == [-9, -9, -9, 0]
    assert stream.letter[b"n"] == b"poison"
    assert stream.letter[b"dlq_error_type"] == b"switchgear.dlq.WorkersDied"
    assert stream.letter[b"dlq_attempts"] == b"3"
    assert stream.pending == []


@pytest.fixture(scope="module")
def cluster_of_one(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster")) as redis_cluster:
        yield redis_cluster


@pytest.fixture
def emptied_cluster(cluster_of_one):
    with redis.Redis.from_url(cluster_of_one.url) as client:
        client.flushall()
    return cluster_of_one


@pytest.mark.parametrize("timeout", [0.5, None])
def test_a_server_that_was_away_is_waited_for_and_nothing_is_lost(tmp_path, timeout):
    with server(tmp_path, "appendfsync always") as place:
        client = redis.Redis.from_url(place.url, socket_timeout=timeout, protocol=2)
        stream = Stream("axiom:events", client)
        messages = []
        at_hand, go_on = threading.Event(), threading.Event()

        def handler(message):
            messages.append(message.id)
            if len(messages) == 1:
                at_hand.set()
                go_on.wait(10)
            if message.fields["n"] == "1":
                raise ValueError("no")

        ids = [stream.add(n=number) for number in range(3)]
        consumer = Consumer(
            redis=redis.Redis.from_url(place.url, socket_timeout=timeout),
            handler=handler,
            stream=stream.name,
            group=GROUP,
            attempts=1,
            wait_seconds=0.1,
        )
        working = threading.Thread(target=consumer.run)
        working.start()
        at_hand.wait(10)
        place.stop()
        go_on.set()
        time.sleep(0.3)
        place.start()
        wait_until(lambda: consumer.counts.handled == 2 and consumer.counts.dead_lettered == 1)
        consumer.stop()
        working.join(10)

        assert messages == ids
        assert (len(stream.letters), stream.pending) == (1, [])


def test_a_full_server_keeps_the_message_pending(tmp_path):
    with server(tmp_path) as place:
        client = redis.Redis.from_url(place.url, protocol=2)
        stream = Stream("axiom:events", client)
        stream.add(n=1)
        consumer = Consumer(
            redis=client, handler=failing, stream=stream.name, group=GROUP, attempts=1
        )
        run_effects(consumer._ensure_group(), consumer._perform)
        client.config_set("maxmemory", 1)
        consumer.step()
        assert (len(stream.pending), stream.letters) == (1, [])

        client.config_set("maxmemory", 0)
        stream.idle(stream.pending[0][0], consumer.consumer)
        consumer._reclaim_at = 0
        consumer.step()

        assert (stream.pending, len(stream.letters)) == ([], 1)


@pytest.mark.parametrize("name", ["axiom:{events}", "axiom:events"])
def test_in_a_cluster_a_message_becomes_a_dead_letter_once(emptied_cluster, name):
    with redis.RedisCluster.from_url(emptied_cluster.url) as client:
        stream = Stream(name, redis.Redis.from_url(emptied_cluster.url, protocol=2))
        for number in range(3):
            stream.add(n=number)
        consumer = Consumer(
            redis=client, handler=failing, stream=name, group=GROUP, backoff_seconds=0
        )

        consumer.step()

        assert consumer.counts.dead_lettered == 3
        assert [dict(one)[b"n"] for one in stream.letters] == [b"0", b"1", b"2"]
        assert stream.pending == []


@pytest.mark.parametrize("name", ["axiom:{events}", "axiom:events"])
def test_in_a_cluster_the_consumer_for_asyncio_does_the_same(emptied_cluster, name):
    async def failing(message):
        raise ValueError("no")

    async def work(url):
        async with redis.asyncio.RedisCluster.from_url(url) as client:
            consumer = AsyncConsumer(
                redis=client, handler=failing, stream=name, group=GROUP, backoff_seconds=0
            )
            await consumer.step()
            return consumer.counts.dead_lettered

    stream = Stream(name, redis.Redis.from_url(emptied_cluster.url, protocol=2))
    stream.add(n=1)

    assert asyncio.run(work(emptied_cluster.url)) == 1
    assert stream.letter[b"n"] == b"1"
    assert stream.pending == []


def test_it_needs_nothing_but_python():
    code = "import sys; sys.path.insert(0, '.'); import switchgear.dlq; print('it does')"

    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        cwd=CLIENT,
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
    )

    assert (result.stdout, result.stderr) == ("it does\n", "")
