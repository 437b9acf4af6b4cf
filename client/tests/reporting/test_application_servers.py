"""Servers that fork their workers: each worker follows, and reports what it was asked."""

import contextlib
import json
import os
import socket
import urllib.request
import uuid

import pytest
import redis
from celery import Celery

from tests.dlq.streams import URL
from tests.fake_console import Console, console
from tests.reporting.program_runner import environment, running
from tests.wait_helpers import wait_until


@pytest.fixture
def there():
    with console() as made:
        yield made


class Answers:
    """Collects the answers of the workers."""

    def __init__(self, ask):
        self.ask = ask
        self.all = []

    def until_both(self, allowed):
        """Ask until two workers say so, and none has said otherwise the latest time."""
        latest = {}

        def agreed():
            with contextlib.suppress(OSError):
                for answer in self.ask():
                    self.all.append(answer)
                    latest[answer["pid"]] = answer["allowed"]
            return len(latest) == 2 and set(latest.values()) == {allowed}

        wait_until(agreed, 60)


def counted(there: Console):
    """Calls for the chat that were allowed and blocked, by instance, as reported last."""
    last = {report["instance"]: report for report in there.reports}
    found = {}
    for instance, report in last.items():
        for one in report["checks"]:
            if one["switch"] == "feature:chat":
                found[instance] = [one["allowed"], one["blocked"]]
    return found


def answered(answers: Answers):
    found = {}
    for answer in answers.all:
        found.setdefault(answer["instance"], [0, 0])[not answer["allowed"]] += 1
    return found


@pytest.mark.parametrize("options", [[], ["--preload"]])
def test_workers_of_gunicorn_follow_and_report(there, tmp_path, options):
    port = free_port()

    def ask():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as response:
            return [json.load(response)]

    answers = Answers(ask)
    command = ["gunicorn", "--workers", "2", "--bind", f"127.0.0.1:{port}", *options]
    given = environment(there, tmp_path)
    with running(*command, "tests.reporting.programs.web:app", given=given) as process:
        answers.until_both(True)
        there.engage("feature:chat")
        answers.until_both(False)
    assert process.returncode == 0

    assert counted(there) == answered(answers)
    assert {name.rpartition("-")[2] for name in counted(there)} == {
        str(answer["pid"]) for answer in answers.all
    }


@pytest.mark.slow
def test_processes_of_celery_follow_and_report(there, tmp_path):
    queue = f"switchgear-{uuid.uuid4().hex}"
    given = environment(there, tmp_path, REDIS_URL=URL, QUEUE=queue)
    app = Celery("asking", broker=URL, backend=URL, set_as_current=False)
    app.conf.task_default_queue = queue

    def ask():
        sent = [app.send_task("tests.reporting.programs.tasks.ask") for _ in range(2)]
        return [one.get(timeout=30) for one in sent]

    answers = Answers(ask)
    command = ["celery", "--app", "tests.reporting.programs.tasks", "worker"]
    options = ["--pool", "prefork", "--concurrency", "2", "--without-gossip", "--without-mingle"]
    try:
        with running(*command, *options, given=given) as process:
            answers.until_both(True)
            there.engage("feature:chat")
            answers.until_both(False)
        assert process.returncode == 0
    finally:
        app.close()
        with redis.Redis.from_url(URL) as client:
            client.delete(queue, f"_kombu.binding.{queue}")

    assert counted(there) == answered(answers)
    assert str(os.getpid()) not in {name.rpartition("-")[2] for name in counted(there)}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
