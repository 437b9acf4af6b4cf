"""Workers killed at any moment: every message is handled or a dead letter, and that once."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.dlq.streams import URL

pytestmark = [pytest.mark.faults, pytest.mark.smoke]
CLIENT = Path(__file__).parents[1]
MESSAGES, KILLS = 2000, 15
WORKER = """
import sys, time
import redis
from switchgear.dlq import Consumer

client = redis.Redis.from_url(sys.argv[1])

def handler(message):
    time.sleep(0.002)
    if int(message.fields["n"]) % 5 == 0:
        raise ValueError("a fifth of them fails")
    client.sadd(sys.argv[2] + ":handled", message.id)

Consumer(
    redis=client, handler=handler, stream=sys.argv[2], group="synapse", backoff_seconds=0.002,
    idle_seconds=0.5, max_deliveries=1000,
).run()
"""


def test_killed_workers_lose_nothing_and_bury_nothing_twice(stream):
    ids = {number: stream.add(n=number) for number in range(MESSAGES)}
    workers = [worker(stream) for _ in range(3)]
    try:
        for _ in range(KILLS):
            time.sleep(random.uniform(0.2, 0.6))
            unlucky = random.randrange(len(workers))
            workers[unlucky].kill()
            workers[unlucky].wait()
            workers[unlucky] = worker(stream)
        until = time.monotonic() + 60
        while len(stream.letters) < MESSAGES / 5 or stream.pending or has_undelivered(stream):
            assert time.monotonic() < until, "it did not come to that"
            time.sleep(0.1)
    finally:
        for one in workers:
            one.kill()
            one.wait()

    handled = {one.decode() for one in stream.redis.smembers(f"{stream.name}:handled")}
    stream.redis.delete(f"{stream.name}:handled")
    buried = [dict(letter)[b"dlq_original_id"].decode() for letter in stream.letters]
    assert sorted(buried) == sorted(one for number, one in ids.items() if number % 5 == 0)
    assert handled == {one for number, one in ids.items() if number % 5}


def worker(stream):
    return subprocess.Popen([sys.executable, "-c", WORKER, URL, stream.name], cwd=CLIENT)


def has_undelivered(stream):
    """Return True if no consumer was given the last message yet."""
    [group] = stream.redis.xinfo_groups(stream.name)
    return group["last-delivered-id"] != stream.redis.xinfo_stream(stream.name)["last-entry"][0]
