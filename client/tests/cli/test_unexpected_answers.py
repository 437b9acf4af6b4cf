"""Answers of another shape, outputs that take nothing, and words that are none."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from switchgear.cli import exits
from tests.cli.shell import TOKEN, Shell
from tests.cli.test_api_client import ENGAGE, ENGAGED, PATH

CLIENT = Path(__file__).resolve().parents[2]
JSON = {"Content-Type": "application/json"}
NOWHERE = Shell("http://127.0.0.1:1")


def in_shell(console, command):
    environment = {**os.environ, "SWITCHGEAR_URL": console.url, "SWITCHGEAR_TOKEN": TOKEN}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{shlex.quote(sys.executable)} -m switchgear {command}"],
        cwd=CLIENT, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        {}, [], None, {"results": None}, {"results": [1]}, {"results": [{}]}, (204, {}, b""),
        (200, JSON, b"[" * 200_000), (200, JSON, b"\xff"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("command", "path"),
    [(("slo",), "/slos/"), (("dlq",), "/dlq/"), (("ramp", "show", "4"), "/ramps/4/")],
)
def test_answer_of_another_shape_ends_with_5_and_a_sentence(console, asking, command, path, answer):
    console.answer("GET", f"/api/v1{path}", answer)

    result = asking(*command)

    assert "Traceback" not in result.err
    assert (result.code, command, answer) in [
        (exits.UNREACHABLE, command, answer),
        (exits.DONE, ("dlq",), []),
    ]


def test_change_with_an_answer_of_another_shape_is_said_to_have_been_sent(console, asking):
    console.answer("POST", PATH, {})

    result = asking(*ENGAGE)

    assert result.code == exits.UNREACHABLE
    assert "was sent" in result.err


def test_list_whose_next_page_is_the_same_ends(console, asking):
    console.answer("GET", "/api/v1/slos/", {"next": "/api/v1/slos/?cursor=a", "results": []})

    assert asking("slo", "--json").json == []
    assert len(console.asked) == 2


def test_message_of_the_outbox_that_is_not_there_ends_with_3(console, asking):
    console.answer("GET", "/api/v1/dlq/outbox/", {"next": None, "results": [{"id": 4}]})

    missing, found = (
        asking("dlq", "show", "outbox", "9"),
        asking("dlq", "show", "outbox", "4", "--json"),
    )

    assert (missing.code, missing.out) == (exits.NOT_FOUND, "")
    assert found.json == [{"id": 4}]


def test_list_that_is_cut_off_says_so_with_documents_too(console, asking):
    page = {"next": "/api/v1/dlq/jobs/?cursor=a", "results": [{"id": n} for n in range(50)]}
    console.answer("GET", "/api/v1/dlq/jobs/", page)

    result = asking("dlq", "job", "--json")

    assert len(result.json) == 50
    assert "More than 50" in result.problem["note"]


def test_output_that_is_full_is_said_in_one_line(console):
    console.answer("POST", PATH, ENGAGED)

    result = in_shell(console, "engage feature:chat --reason 'Wrong figures' --json >/dev/full")

    assert result.returncode == exits.FAILED
    assert len(result.stderr.splitlines()) == 1
    assert "change itself was made" in result.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "2>/dev/full", "| true"])
def test_output_that_is_closed_changes_no_exit_code(console, closed):
    console.answer("POST", PATH, ENGAGED)

    result = in_shell(console, f"engage feature:chat --reason 'Wrong figures' --json {closed}")

    assert result.returncode == 0
    assert result.stderr == ""


def test_words_that_are_not_utf_8_are_refused(console):
    result = in_shell(console, "engage feature:chat --reason $'Wrong \\xff figures'")

    assert result.returncode == exits.USAGE
    assert "UTF-8" in result.stderr
    assert console.asked == []


def test_documents_hold_nothing_that_a_terminal_obeys(console, asking):
    said = "a\x9bb\u202ec\u2028d 김"
    console.answer(
        "GET", "/api/v1/slos/", {"next": None, "results": [{"name": said, "state": "ok"}]}
    )

    result = asking("slo", "--json")

    assert result.json[0]["name"] == said
    assert "a\\u009bb\\u202ec\\u2028d 김" in result.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("watch", "all"), ("watch", "switch"), ("watch", "--poll", "nonsense"),
        ("engage", "feature:x", "--reason", "r", "--for", ""),
        ("engage", "feature:x", "--reason", "r", "--for", "soon"),
        ("engage", "feature:x", "--reason", "r", "--until", "9999-12-31T23:59:59-12:00"),
        ("engage", "feature:x", "--reason", "r", "--break-glass-reason", "why"),
        ("engage", "feature:x", "--reason", "r", "--wait-seconds", "5"),
        ("release", "feature:x", "--reason", "r", "--plan", "nan,100"),
        ("dlq", "retry", "a", "--all", "--reason", "r", "--rate", "nan"),
        ("slo", "show"),
    ],
)  # fmt: skip
def test_wrong_command_line_is_a_document_where_documents_are_wanted(arguments):
    result = NOWHERE(*arguments, "--json")

    assert (result.code, result.out) == (exits.USAGE, "")
    assert result.problem["type"] == "urn:switchgear:cli:usage"
    assert result.problem["detail"]
