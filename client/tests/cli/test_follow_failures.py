"""`--wait` and `--follow` print what was done, however following ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from switchgear.cli import exits
from tests.cli.shell import CLOSE, TOKEN
from tests.cli.test_api_client import ENGAGE, ENGAGED, PATH
from tests.cli.test_follow import ramp

CLIENT = Path(__file__).resolve().parents[2]
SWITCH = "/api/v1/switches/feature/chat/"
RELEASE = ("release", "feature:chat", "--reason", "Fixed by deploy 412", "--follow")
WAIT = (*ENGAGE, "--wait", "--wait-seconds", "1")
PROVEN = {
    **ENGAGED,
    "effect": {"version": 3, "applied": 2, "instances": 2, "p99_ms": 9, "stragglers": []},
}
PROBLEM = {"detail": "It is not to be.", "title": "No"}


@pytest.mark.parametrize("answer", [(401, PROBLEM), (404, PROBLEM), (503, PROBLEM), CLOSE, {}])
def test_change_is_told_if_its_proof_cannot_be_had(console, asking, answer):
    console.answer("POST", PATH, ENGAGED)
    console.answer("GET", SWITCH, answer)

    began = time.monotonic()
    result = asking(*WAIT, "--json")

    assert result.json["state"] == "engaged"
    assert result.code == exits.FAILED
    assert "effect could not be confirmed" in result.problem["detail"]
    assert time.monotonic() - began < 20


def test_what_is_told_says_that_it_is_done_and_why_there_is_no_proof(console, asking):
    console.answer("POST", PATH, ENGAGED)
    console.answer("GET", SWITCH, (401, {**PROBLEM, "status": 401}))

    result = asking(*WAIT)

    assert "ENGAGED" in result.out
    assert (
        "The change is saved, but its effect could not be confirmed: It is not to be." in result.err
    )


def test_console_that_asks_for_patience_is_asked_again(console, asking):
    busy = (429, {"Content-Type": "application/json", "Retry-After": "1"}, b'{"detail": "Wait."}')
    console.answer("POST", PATH, ENGAGED)
    console.answer("GET", SWITCH, busy, PROVEN)

    result = asking(*ENGAGE, "--wait", "--json")

    assert (result.code, result.json) == (0, PROVEN)


def test_without_proof_it_ends_with_1_though_it_waits_for_approval_too(console, asking):
    approval = {"id": 5, "summary": "engage for good"}
    console.answer("POST", PATH, {**ENGAGED, "approval": approval})
    console.answer("GET", SWITCH, ENGAGED)

    result = asking(*ENGAGE, "--for", "permanent", "--wait", "--wait-seconds", "1")

    assert result.code == exits.FAILED
    assert "request 5" in result.out


def test_release_is_told_if_its_ramp_cannot_be_followed(console, asking):
    released = {**ENGAGED, "ramp": ramp("running")}
    console.answer("POST", "/api/v1/switches/feature/chat/release", released)
    console.answer("GET", "/api/v1/ramps/4/", (403, PROBLEM))

    result = asking(*RELEASE, "--json")

    assert (result.code, result.json) == (exits.FAILED, released)
    assert "switchgear ramp follow 4" in result.problem["detail"]


def test_bulk_job_is_told_if_it_cannot_be_followed(console, asking):
    job = {"id": 7, "state": "pending"}
    console.answer("POST", "/api/v1/dlq/jobs/", job)
    console.answer("GET", "/api/v1/dlq/jobs/7/", (401, PROBLEM))

    result = asking("dlq", "retry", "a", "--all", "--reason", "Fixed now", "--follow", "--json")

    assert (result.code, result.json) == (exits.FAILED, job)


def test_ctrl_c_while_waiting_still_tells_the_change(console):
    console.answer("POST", PATH, ENGAGED)
    console.answer("GET", SWITCH, ENGAGED)
    environment = {**os.environ, "SWITCHGEAR_URL": console.url, "SWITCHGEAR_TOKEN": TOKEN}
    process = subprocess.Popen(
        [sys.executable, "-m", "switchgear", *ENGAGE, "--wait", "--json"],
        cwd=CLIENT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until = time.monotonic() + 30
    while len(console.asked) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)

    assert process.returncode == exits.INTERRUPTED
    assert json.loads(out) == ENGAGED
    assert "Traceback" not in err
