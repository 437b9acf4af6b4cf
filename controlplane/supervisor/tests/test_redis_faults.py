"""An embedded Redis that can't start: the run continues, and Redis comes back."""

import os
import shutil
import signal
from pathlib import Path

import pytest
import redis

from controlplane.supervisor.tests import harness
from controlplane.supervisor.tests.harness import assert_nothing_left, services, start

pytestmark = pytest.mark.faults

LETTERS = 500
STREAM = "axiom:dlq:orders"
ZEROS = bytes(4096)


def test_a_damaged_file_is_set_aside_and_most_letters_survive(data: Path) -> None:
    with start(data) as run:
        run.wait_until_ready()
        url = services(data)["redis_url"]
        fill(url)

        os.kill(harness.read_redis_pid(url), signal.SIGKILL)
        damage(data)

        run.wait_for("damaged files are kept in")
        harness.wait_until(lambda: harness.ping_redis(url), 10, run)
        assert LETTERS // 2 < redis.Redis.from_url(url).xlen(STREAM) < LETTERS
        assert web_answers(run.port)
        (kept,) = (data / "redis-damaged").iterdir()
        assert any(ZEROS in path.read_bytes() for path in kept.rglob("*") if path.is_file())
        assert run.end()[0] == 0
        assert_nothing_left(run)


@pytest.mark.smoke
def test_a_file_damaged_while_nothing_ran_does_not_stop_the_next_run(data: Path) -> None:
    with start(data) as run:
        run.wait_until_ready()
        fill(services(data)["redis_url"])
        run.end()
    damage(data)

    with start(data) as again:
        again.wait_until_ready()
        url = services(data)["redis_url"]
        harness.wait_until(lambda: harness.ping_redis(url), 10, again)
        assert LETTERS // 2 < redis.Redis.from_url(url).xlen(STREAM) < LETTERS


def test_a_damaged_dump_costs_the_dump_and_not_what_came_after_it(data: Path) -> None:
    with start(data) as run:
        run.wait_until_ready()
        url = services(data)["redis_url"]
        fill(url)
        rewrite(url)
        redis.Redis.from_url(url).rpush("after", "kept")
        run.end()
    for path in logs(data):
        content = path.read_bytes()
        if content.startswith((b"REDIS", b"VALKEY")):
            path.write_bytes(content[:40] + bytes(64) + content[104:])

    with start(data) as again:
        again.wait_until_ready()
        url = services(data)["redis_url"]
        harness.wait_until(lambda: harness.ping_redis(url), 20, again)
        assert redis.Redis.from_url(url).lrange("after", 0, -1) == [b"kept"]


def test_a_redis_that_keeps_dying_ends_nothing_and_comes_back(data: Path) -> None:
    with start(data) as run:
        run.wait_until_ready()
        url = services(data)["redis_url"]
        folder = data / "redis"

        shutil.rmtree(folder)
        folder.write_text("in the way")
        os.kill(harness.read_redis_pid(url), signal.SIGKILL)

        run.wait_for("redis stopped 5 times in a row")
        assert web_answers(run.port)
        folder.unlink()
        folder.mkdir(mode=0o700)
        harness.wait_until(lambda: harness.ping_redis(url), 15, run)
        assert run.end()[0] == 0
        assert_nothing_left(run)


def fill(url: str) -> None:
    client = redis.Redis.from_url(url)
    with client.pipeline(transaction=False) as pipeline:
        for number in range(LETTERS):
            pipeline.xadd(STREAM, {"number": number, "body": "x" * 100})
        pipeline.execute()


def rewrite(url: str) -> None:
    client = redis.Redis.from_url(url)
    client.bgrewriteaof()
    harness.wait_until(lambda: client.info("persistence")["aof_rewrite_in_progress"] == 0, 10)


def logs(data: Path) -> list[Path]:
    return [path for path in (data / "redis").rglob("appendonly*") if path.is_file()]


def damage(data: Path) -> None:
    """Put a block of zeros into the middle of the largest file, as a power cut leaves it."""
    path = max(logs(data), key=lambda path: path.stat().st_size)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 3)
        file.write(ZEROS)


def web_answers(port: int) -> bool:
    return not harness.is_free(port)
