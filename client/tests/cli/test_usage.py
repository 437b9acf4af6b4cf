"""The syntax of the command line, and usage errors."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from switchgear.cli import exits
from tests.cli.shell import Shell

CLIENT = Path(__file__).resolve().parents[2]
NOWHERE = Shell("http://127.0.0.1:1")


def bare(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command without its extra: only Python and the library."""
    return subprocess.run(
        [sys.executable, "-S", "-m", "switchgear", *arguments],
        cwd=CLIENT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_lists_every_exit_code_and_command():
    result = NOWHERE("--help")

    assert result.code == 0
    for code, meaning in exits.MEANINGS.items():
        assert re.search(rf"^ +{code}  {re.escape(meaning)}$", result.out, re.MULTILINE)
    for name in ("status", "engage", "release", "extend", "acknowledge", "undo", "history", "ramp",
                 "breakers", "dlq", "slo", "watch"):  # fmt: skip
        assert re.search(rf"^ +{name} ", result.out, re.MULTILINE)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nothing",),
        ("engage", "segment:finance"),
        ("engage", "segmen:finance", "--reason", "Wrong figures"),
        ("engage", "finance", "--reason", "Wrong figures"),
        ("engage", "feature:x", "--reason", "r", "--for", "1h", "--until", "18:00"),
        ("engage", "feature:x", "--reason", "r", "--until", "soon"),
        ("engage", "feature:x", "--reas", "an abbreviation"),
        ("release", "feature:x", "--reason", "r", "--immediate", "--plan", "5,100"),
        ("release", "feature:x", "--reason", "r", "--plan", "five"),
        ("release", "feature:x", "--reason", "r", "--gate", "luck"),
        ("breakers", "show", "core-"),
        ("breakers", "override", "core/oracle", "open", "--for", "1h", "--reason", "r"),
        ("ramp", "show", "finance"),
        ("status", "--exit-code"),
        ("dlq", "retry", "axiom:dlq:events", "--reason", "r"),
        ("dlq", "retry", "axiom:dlq:events", "1-1", "--all", "--reason", "r"),
        ("dlq", "discard", "outbox", "--all", "--reason", "r"),
        ("status", "--token", "sg_a_b"),
    ],
)
def test_wrong_command_line_ends_with_2_and_asks_nobody(arguments):
    result = NOWHERE(*arguments)

    assert result.code == exits.USAGE
    assert result.out == ""
    assert result.err.strip()


def test_without_a_url_it_says_where_to_put_one():
    result = Shell(None)("status")

    assert (result.code, result.out) == (exits.USAGE, "")
    assert "SWITCHGEAR_URL" in result.err


@pytest.mark.parametrize("token", [None, "", "two words"])
def test_without_a_usable_token_it_ends_with_4(token):
    result = Shell("http://127.0.0.1:1", token)("status", "--json")

    assert result.code == exits.NO_RIGHTS
    assert "token" in result.problem["detail"].lower()
    assert "two words" not in result.err


def test_token_file_is_read_and_one_that_is_not_there_is_named(tmp_path, console):
    console.answer("GET", "/api/v1/slos/", {"next": None, "results": []})
    file = tmp_path / "token"
    file.write_text("sg_from_file\n")
    shell = Shell(console.url, None)

    found = shell("slo", "--token-file", str(file))
    missing = shell("slo", "--token-file", str(tmp_path / "none"))

    assert found.code == 0
    assert console.asked[0][2]["Authorization"] == "Bearer sg_from_file"
    assert missing.code == exits.NO_RIGHTS
    assert str(tmp_path / "none") in missing.err


def test_without_its_packages_it_says_what_to_install():
    result = bare("status", SWITCHGEAR_URL="http://127.0.0.1:1", SWITCHGEAR_TOKEN="sg_a_b")
    watching = bare("watch", "--json", SWITCHGEAR_URL="http://127.0.0.1:1", SWITCHGEAR_TOKEN="t")

    for one in (result, watching):
        assert one.returncode == exits.USAGE
        assert one.stdout == ""
        assert "pip install './client[cli]'" in one.stderr
        assert len(one.stderr.strip().splitlines()) == 1


def test_without_its_packages_documents_and_version_still_come(console):
    console.answer(
        "GET", "/api/v1/slos/", {"next": None, "results": [{"name": "a", "state": "ok"}]}
    )

    documents = bare("slo", "--json", SWITCHGEAR_URL=console.url, SWITCHGEAR_TOKEN="sg_a_b")
    version = bare("--version")

    assert (documents.returncode, '"name": "a"' in documents.stdout) == (0, True)
    assert re.fullmatch(r"switchgear \d+\.\d+\.\d+\n", version.stdout)


def test_reader_that_has_enough_is_no_error(console):
    many = [{"name": f"slo-{n}", "state": "ok"} for n in range(5_000)]
    console.answer("GET", "/api/v1/slos/", {"next": None, "results": many})
    command = f"{shlex.quote(sys.executable)} -m switchgear slo --json | head -1"
    environment = {**os.environ, "SWITCHGEAR_URL": console.url, "SWITCHGEAR_TOKEN": "sg_a_b"}

    result = subprocess.run(
        ["bash", "-c", command], cwd=CLIENT, env=environment, capture_output=True, timeout=60,
        check=True,
    )  # fmt: skip

    assert result.stdout == b"[\n"
    assert result.stderr == b""
