"""The Celery example in a real worker that forks, on the Redis that the suite runs with."""

import contextlib
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery
from celery.result import AsyncResult

from switchgear import SwitchEngaged
from tests.dlq.streams import URL
from tests.fake_console import console
from tests.service_processes import environment, running
from tests.wait_helpers import wait_until


@pytest.fixture
def queue() -> Iterator[str]:
    name = f"digests-{uuid.uuid4().hex}"
    yield name
    with redis.Redis.from_url(URL) as client:
        client.delete(name, f"_kombu.binding.{name}")


@contextlib.contextmanager
def sender(queue: str) -> Iterator[Celery]:
    app = Celery("sender", broker=URL, backend=URL, set_as_current=False)
    app.conf.task_default_queue = queue
    try:
        yield app
    finally:
        app.close()


def failure(result: AsyncResult) -> Any:
    """Return the switch that stopped a waiting task."""
    return result.result if result.state == "RETRY" else None


@pytest.mark.timeout(240)
def test_task_that_is_stopped_waits_until_it_is_released(tmp_path: Path, queue: str) -> None:
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat")
    options = ("-A", "celery_app", "worker", "--pool", "prefork", "--concurrency", "2", *quiet)
    with console() as there, sender(queue) as app:
        env = environment(there, tmp_path, REDIS_URL=URL, QUEUE=queue, WAIT_SECONDS="0.5")
        with running("celery", *options, folder=tmp_path, env=env):
            done = app.send_task("celery_app.digest", ["kim"])
            assert re.fullmatch(r"Digest for kim by \d+", done.get(timeout=60))

            there.engage("feature:digest", reason="wrong figures in it")
            waiting: list[AsyncResult] = []

            def is_stopped() -> bool:
                waiting.append(app.send_task("celery_app.digest", ["lee"]))
                wait_until(
                    lambda: waiting[-1].ready() or failure(waiting[-1]), explain="it is tried"
                )
                return bool(failure(waiting[-1]))

            wait_until(is_stopped, explain="a child of the pool is told")
            error = wait_until(lambda: failure(waiting[-1]), explain="the task waits")
            assert isinstance(error, SwitchEngaged)
            assert (error.switch, error.reason) == ("feature:digest", "wrong figures in it")

            there.release("feature:digest")
            assert waiting[-1].get(timeout=60).startswith("Digest for lee")
        for result in (done, *waiting):
            result.forget()
