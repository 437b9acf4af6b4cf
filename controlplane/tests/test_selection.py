"""`--fast` runs the tests that need no service, and fails those that need one anyway."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
REACHING = """
import os
from asyncio import create_subprocess_exec, run
from asyncio import open_connection, start_server

import pytest


def test_plain():
    pass


def test_own_server():
    async def main():
        async with await start_server(lambda *_: None, "127.0.0.1", 0) as server:
            _, writer = await open_connection(*server.sockets[0].getsockname())
            writer.close()

    run(main())


def test_process():
    run(create_subprocess_exec("true"))


def test_fork():
    os.fork()


def test_redis_that_is_away():
    async def main():
        with pytest.raises(Exception):
            await open_connection("127.0.0.1", 1)

    run(main())


@pytest.mark.slow
def test_slow():
    pass
"""


OUTCOME = re.compile(r"::(test_\w+) (PASSED|FAILED|ERROR)")


def test_fast_run_fails_tests_that_reach_a_service_and_leaves_out_those_that_say_so(tmp_path):
    (tmp_path / "test_reaching.py").write_text(REACHING)
    (tmp_path / "test_saying_so.py").write_text("import socket\ndef test_any(): pass\n")

    given = ("-p", "controlplane.tests.selection", "-p", "no:cacheprovider", "-c", os.devnull)

    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "--fast", *given, "--rootdir=.", "-Wignore", "."],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=60,
    )

    outcomes = dict(OUTCOME.findall(ran.stdout))  # The last of each: an error while it was ended.
    assert outcomes == {
        "test_plain": "PASSED",
        "test_own_server": "PASSED",
        "test_process": "ERROR",
        "test_fork": "ERROR",
        "test_redis_that_is_away": "ERROR",
    }, ran.stdout + ran.stderr
