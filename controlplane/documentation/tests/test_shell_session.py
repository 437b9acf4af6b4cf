"""A page's blocks run in one bash session, and a failure names its line."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.documentation.blocks import parse_page

from .shell_session import BlockFailed, ShellSession

Run = Callable[[str], ShellSession]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    folder = tmp_path / "checkout"
    folder.mkdir()

    def run(page: str, seconds: int = 20) -> ShellSession:
        scratch = Path(tempfile.mkdtemp(dir=tmp_path))
        with ShellSession("docs/page.md", folder, scratch, os.environ, seconds) as session:
            for block in parse_page(page):
                session.write(block) if block.title else session.run(block)
        return session

    return run


def test_variables_functions_and_the_directory_carry_over(run: Run, tmp_path: Path) -> None:
    session = run(
        '```sh\nmkdir sub; cd sub; export A=1; b=2\nf() { echo "$1$A$b"; }\n```\n'
        '```text title="x/file.txt"\nhello\n```\n'
        "<!-- expect: 312 -->\n<!-- expect: hello -->\n```sh\nf 3; cat x/file.txt\n```\n"
    )

    assert session.directory == tmp_path / "checkout" / "sub"


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("a\n```sh\ntrue\nfalse\ntrue\n```", "block at line 3: failed at line 4: false"),
        ("```sh\necho $NOTHING_SET\n```", "page.md: line 2: NOTHING_SET: unbound variable"),
        ("<!-- expect: b -->\n```sh\necho a\n```", r"did not print \['b'\]"),
        ("<!-- fails -->\n```sh\ntrue\n```", "should have failed"),
        ("<!-- background -->\n```sh\necho gone\n```", "ended at once(.|\n)*gone"),
        ("```sh\nread x\n```", "failed at line 2: read x"),
        ("```sh\necho a | false | cat\n```", "failed at line 2: cat"),
        ("```sh\ntrue\nexport A=$(false)\necho b\n```", "failed at line 3: false(.|\n)*b"),
        ("```sh\nexport A=$(false | cat)\n```", "failed at line 2: cat"),
    ],
)
def test_a_failure_names_line_command_and_output(run: Run, page: str, problem: str) -> None:
    with pytest.raises(BlockFailed, match=problem):
        run(page)


def test_a_block_that_fails_as_the_page_says_ends_nothing(run: Run) -> None:
    run("<!-- fails -->\n<!-- expect: no -->\n```sh\necho no\nfalse\n```\n```sh\ntrue\n```\n")


@pytest.mark.parametrize(
    "command", ["yes | head -n 1", "a=$(yes | head -n 1)", "if false; then :; fi"]
)
def test_a_closed_pipe_and_a_condition_are_no_failures(run: Run, command: str) -> None:
    run(f"<!-- expect: done -->\n```sh\n{command}\necho done\n```\n")


def test_a_page_that_takes_too_long_fails(run: Run) -> None:
    started = time.monotonic()

    with pytest.raises(BlockFailed, match="took too long"):
        run("```sh\nsleep 30\n```", 1)

    assert time.monotonic() - started < 10


def test_a_server_in_the_background_is_awaited_and_ended(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "import http.server, time\ntime.sleep(0.5)\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n"
        "print(server.server_port, flush=True)\nserver.serve_forever()\n"
    )

    run(
        f"<!-- background -->\n```sh\n{sys.executable} {script} > port\n```\n"
        "```sh\nport=$(cat port); exec 3<>/dev/tcp/127.0.0.1/$port\n```\n"
    )

    port = (tmp_path / "checkout" / "port").read_text().strip()
    with pytest.raises(BlockFailed, match="refused"):
        run(f"```sh\nexec 3<>/dev/tcp/127.0.0.1/{port}\n```")
