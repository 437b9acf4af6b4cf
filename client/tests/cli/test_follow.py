"""Ramps and jobs, followed until they are over."""

from typing import Any

from switchgear.cli import exits
from tests.cli.shell import CLOSE

STEP = {
    "percent": 5, "state": "dwelling", "started_at": "2026-11-22T14:00:00Z", "dwell_seconds": 300,
    "dwell_until": "2026-11-22T14:05:00Z", "gates": [],
}  # fmt: skip
JOB = "/api/v1/dlq/jobs/7/"


def ramp(state: str, index: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "id": 4, "switch": "feature:chat", "state": state, "stuck": False, "step_index": index,
        "allow_percent": (5, 100)[index], "steps": [STEP, {**STEP, "percent": 100}],
        "requested_by": "user:kim", "justification": "Fixed", "hold_reason": "", "approval": None,
        "overridden": [], "created_at": "2026-11-22T14:00:00Z", "finished_at": None,
        "outcome": "", "error": "", **more,
    }  # fmt: skip


def job(state: str, done: int) -> dict[str, Any]:
    return {
        "id": 7, "state": state, "stuck": False, "action": "retry", "stream": "axiom:dlq:events",
        "filter": {}, "reason": "Fixed", "created_by": "user:kim", "hold_reason": "",
        "approval": None, "progress": {"done": done, "total": 40, "rate_per_second": 10.0},
        "counts": {"done": done}, "created_at": "2026-11-22T14:00:00Z", "finished_at": None,
        "outcome": "", "error": "it broke" if state == "failed" else "",
    }  # fmt: skip


def test_ramp_is_followed_to_its_end_a_line_for_each_change(console, asking):
    console.answer("GET", "/api/v1/switches/feature/chat/", {"ramp": 4})
    console.answer("GET", "/api/v1/ramps/4/", ramp("running"), ramp("running"),
                   ramp("holding", hold_reason="no data"), ramp("completed", 1))  # fmt: skip

    result = asking("ramp", "follow", "feature:chat")

    lines = [line for line in result.err.splitlines() if line.startswith("feature:chat")]
    assert result.code == 0
    assert len(lines) == 3
    assert "holding: no data" in lines[1]
    assert "completed" in result.out


def test_ramp_that_is_aborted_ends_with_1_and_says_why(console, asking):
    aborted = ramp("aborted", outcome="The gate slo failed.")
    console.answer("GET", "/api/v1/ramps/4/", ramp("running"), aborted)

    result = asking("ramp", "follow", "4", "--json")

    assert result.code == exits.FAILED
    assert result.json == aborted
    assert "The gate slo failed." in result.problem["detail"]


def test_console_that_goes_away_meanwhile_is_waited_for(console, asking):
    console.answer("GET", JOB, job("running", 10), CLOSE, CLOSE, job("completed", 40))

    result = asking("dlq", "job", "follow", "7")

    assert result.code == 0
    assert "Retrying." in result.err
    assert "40 of 40" in result.err


def test_job_whose_letters_failed_again_is_not_shown_as_completed(console, asking):
    result = {
        "text": "20 sent, 20 failed again",
        "word": "All failed again",
        "severity": "critical",
    }
    console.answer("GET", JOB, {**job("completed", 20), "result": result})

    shown = asking("dlq", "job", "show", "7").out

    assert "✖ 20 sent, 20 failed again" in shown
    assert "completed" not in shown


def test_job_that_fails_ends_with_1(console, asking):
    console.answer("GET", JOB, job("failed", 10))

    result = asking("dlq", "job", "follow", "7")

    assert result.code == exits.FAILED
    assert "it broke" in result.err


def test_switch_without_a_ramp_ends_with_3(console, asking):
    console.answer("GET", "/api/v1/switches/feature/chat/", {"ramp": None})

    result = asking("ramp", "abort", "feature:chat", "--reason", "It looks bad")

    assert result.code == exits.NOT_FOUND
    assert len(console.asked) == 1
