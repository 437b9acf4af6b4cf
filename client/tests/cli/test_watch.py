"""`watch`: a line for each change, by a socket or by asking."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from switches.tests.browsers import engaged
from switchgear.cli import exits
from tests.cli.shell import Shell

pytestmark = pytest.mark.timeout(180)
CLIENT = Path(__file__).resolve().parents[2]
SECONDS = 30


class Watching:
    """A real process, and what it says line by line."""

    def __init__(self, shell, *arguments):
        environment = {"SWITCHGEAR_URL": shell.url, "SWITCHGEAR_TOKEN": shell.token}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.quick_cli", "watch", *arguments],
            cwd=CLIENT,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def read_until(self, *words):
        """The first line from here on that has all the words."""
        lines = []
        while not lines or not all(word in lines[-1] for word in words):
            try:
                lines.append(self._lines.get(timeout=SECONDS))
            except queue.Empty:
                raise AssertionError(f"no {words} among {lines}") from None
        return lines[-1]

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(SECONDS)

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))


@contextmanager
def watching(shell, *arguments):
    watch = Watching(shell, *arguments)
    try:
        yield watch
    finally:
        watch.process.kill()
        watch.process.wait()
        watch.process.stdout.close()
        watch.process.stderr.close()


@pytest.mark.django_db(transaction=True)
def test_change_is_a_line_at_once_and_ctrl_c_ends_it(shell):
    engaged("segment:before")
    with watching(shell) as watch:
        first = watch.read_until("segment:before")
        engaged("segment:told", reason="Wrong figures since 14:02")

        told = watch.read_until("segment:told")
        code = watch.interrupt()
        complaints = watch.process.stderr.read()

    assert "ENGAGED" in first
    assert "Wrong figures since 14:02" in told
    assert code == exits.INTERRUPTED
    assert complaints == ""


@pytest.mark.django_db(transaction=True)
def test_json_is_a_document_a_line(shell):
    with watching(shell, "switches", "--json") as watch:
        engaged("segment:told")

        told = json.loads(watch.read_until('"segment:told"'))

    assert told["topic"] == "switches"
    assert told["data"]["state"] == "engaged"


@pytest.mark.django_db(transaction=True)
def test_topic_that_the_token_may_not_watch_ends_with_4(shell_of):
    with watching(shell_of("switches:read"), "slo") as watch:
        assert watch.process.wait(SECONDS) == exits.NO_RIGHTS
        assert "slo" in watch.process.stderr.read()


@pytest.mark.django_db(transaction=True)
def test_unknown_token_ends_with_4(shell):
    with watching(Shell(shell.url, "sg_nobody_knows-this")) as watch:
        assert watch.process.wait(SECONDS) == exits.NO_RIGHTS


def test_where_sockets_are_refused_it_asks(console, asking):
    level = {"level": 2, "name": "critical", "causes": ["oracle is away"]}
    console.answer(
        "GET", "/api/v1/degradation", {"level": 0, "name": "normal", "causes": []}, level
    )
    with watching(asking, "degradation") as watch:
        told = watch.read_until("critical")
        watch.interrupt()

        assert "Live updates off" in watch.process.stderr.read()

    assert "oracle is away" in told


def test_console_that_was_never_there_ends_with_5():
    with watching(Shell("http://127.0.0.1:1")) as watch:
        assert watch.process.wait(SECONDS) == exits.UNREACHABLE
