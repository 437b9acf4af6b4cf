"""Runs test programs with a client's environment."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.fake_console import TOKEN, Console

CLIENT = Path(__file__).parents[2]


def environment(console: Console, state_dir: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(CLIENT),
        "SWITCHGEAR_URL": console.url,
        "SWITCHGEAR_TOKEN": TOKEN,
        "SWITCHGEAR_SERVICE": "core",
        "SWITCHGEAR_STATE_DIR": str(state_dir / "state"),
        **more,
    }


def run(program: str, *words: str, given: dict[str, str], seconds: float = 100.0) -> str:
    """Return the program's output; fail if it fails or takes too long."""
    ended = subprocess.run(
        [sys.executable, "-m", f"tests.reporting.programs.{program}", *words],
        env=given,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


@contextlib.contextmanager
def running(*command: str, given: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module during the block; end it gracefully."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command], env=given, stderr=subprocess.DEVNULL
    )
    try:
        yield process
        process.terminate()
        process.wait(30)
    finally:
        process.kill()
        process.wait()
