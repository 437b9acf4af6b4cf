"""A service is not affected by a faulty console."""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from switchgear import Switchgear
from tests import faults
from tests.fake_console import SNAPSHOT, STREAM, TOKEN, console, entry
from tests.wait_helpers import wait_until

CLIENT = Path(__file__).parents[2]
MAX_BYTES = 150 * 2**20
"""What a service with a client may grow to: three times the largest snapshot, and Python."""


EVERYWHERE = [
    faults.errors,
    faults.garbage,
    faults.deep_json,
    faults.older,
    faults.endless_body,
    faults.endless_headers,
    faults.endless_interim,
    faults.dripping_body,
    faults.hangs,
    faults.hangs_up,
    faults.many_objects,
    faults.many_numbers,
    faults.crumbs,
]
ON_STREAMS = [
    faults.comments_without_end, faults.event_without_end, faults.event_of_many_lines,
    faults.dripping_event, faults.storm,
]  # fmt: skip


class Service:
    def __init__(self, there):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.console.service_program", there.url, TOKEN],
            cwd=CLIENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._read_output() == {"ready": True}

    def work(self, seconds):
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return self._read_output()

    def end(self):
        self._process.stdin.close()
        assert self._process.wait(20) == 0

    def _read_output(self):
        return json.loads(self._process.stdout.readline())


@contextlib.contextmanager
def service(there):
    made = Service(there)
    try:
        yield made
        made.end()
    finally:
        made._process.kill()
        made._process.wait()


@pytest.mark.faults
@pytest.mark.parametrize("place", ["lie", "stream_lie"])
def test_a_busy_service_is_as_quick_as_with_an_honest_console(place):
    told = EVERYWHERE if place == "lie" else ON_STREAMS
    with console() as there:
        there.entries = {f"segment:s{n}": entry(f"segment:s{n}") for n in range(1000)}
        there.engage("feature:chat")
        with service(there) as busy:
            busy.work(0.3)
            for lie in told:
                setattr(there, place, None)
                there.cut()
                honest = busy.work(0.3)
                setattr(there, place, lie)
                there.cut()
                lied = work_while_it_lies(busy, there)
                assert lied["p99_us"] <= 3 * honest["p99_us"] + 20, (lie, honest, lied)
                assert lied["allowed"] == [False], lie
                assert lied["raised"] == 0, lie
                assert lied["rss_bytes"] < MAX_BYTES, (lie, lied)


def work_while_it_lies(busy, there):
    """Until the console was asked in that time."""
    for _ in range(60):
        before = len(there.requests_for(SNAPSHOT)) + len(there.requests_for(STREAM))
        lied = busy.work(0.4)
        if len(there.requests_for(SNAPSHOT)) + len(there.requests_for(STREAM)) > before:
            return lied
    raise AssertionError("the console was not asked")


@pytest.mark.slow
def test_a_service_without_a_console_starts_with_what_was_known_last(tmp_path):
    with console() as there:
        there.engage("feature:chat", reason="the last word of the console")
        with Switchgear(there.url, TOKEN, state_dir=tmp_path) as gear:
            assert gear.wait_ready(20)
            wait_until(lambda: any(tmp_path.glob("*.snapshot")), 10)
    began = time.monotonic()
    with Switchgear(there.url, TOKEN, state_dir=tmp_path) as gear:
        assert time.monotonic() - began < 2
        decision = gear.check(feature="chat")
        assert (decision.allowed, decision.switch) == (False, "feature:chat")
        assert decision.reason == "the last word of the console"
        assert gear.status().source == "disk"
        assert gear.status().age_seconds is None
        wait_until(lambda: gear.status().way == "down", 20)
        with console(port=there.port, epoch=there.epoch, version=there.version) as again:
            again.release("feature:chat")
            wait_until(lambda: gear.allowed(feature="chat"), 60)
            assert gear.status().source == "console"
            assert gear.status().age_seconds < 30


@pytest.mark.faults
def test_a_hundred_clients_whose_console_restarts_come_back_one_by_one():
    clients = 100
    with console() as there, contextlib.ExitStack() as stack:
        gears = [
            stack.enter_context(
                Switchgear(there.url, TOKEN, instance=f"a{n}", state_dir=None, reports=False)
            )
            for n in range(clients)
        ]
        wait_until(lambda: all(gear.status().way == "stream" for gear in gears), 60)
        there.lie = faults.errors
        before, began = len(there.asked), time.monotonic()
        there.cut()
        wait_until(lambda: all(gear.status().way == "down" for gear in gears), 30)
        time.sleep(3)
        there.lie = None
        wait_until(lambda: all(gear.status().error is None for gear in gears), 60)

        asked = [
            one.at - began
            for one in there.asked[before:]
            # Acknowledgements take no document.
            if one.path == SNAPSHOT and one.headers.get("if-none-match") != "*"
        ]
        bins = [int(at * 10) for at in asked]
        worst = max(bins.count(one) for one in set(bins))
        assert worst <= clients * 0.5, sorted(bins)  # Of which a busy machine makes a part.
        assert len(asked) < clients * 8
