"""Creates the virtual environment `.venv`: `bootstrap.py FILE STAMP`, run by the system's Python.

It installs the pinned requirements of FILE and touches STAMP, with only the standard library.
Concurrent runs wait for each other. An interrupted installation starts over.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

VENV = Path(".venv")
UNFINISHED = VENV / ".unfinished"
PYTHON = VENV / "bin" / "python"


def main(requirements: Path, stamp: Path) -> int:
    with requirements.open("rb") as file:
        _lock(file.fileno())
        is_new = stamp.exists() and stamp.stat().st_mtime >= requirements.stat().st_mtime
        if is_new and _is_usable():
            return 0
        sys.stdout.write(f"Installing {requirements} into {VENV}\n")
        sys.stdout.flush()
        try:
            _make_venv()
            _install(requirements)
        except subprocess.CalledProcessError as error:
            sys.stderr.write(f"setting up {VENV} failed: {' '.join(map(str, error.cmd))}\n")
            return 1
        UNFINISHED.unlink()
        stamp.touch()
    return 0


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stdout.write("Waiting for another setup in this checkout\n")
        sys.stdout.flush()
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _is_usable() -> bool:
    """Return True if the environment is complete and its Python still runs."""
    if UNFINISHED.exists() or not PYTHON.exists():
        return False
    result = subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False)
    return result.returncode == 0


def _make_venv() -> None:
    usable = _is_usable()
    if not usable:
        shutil.rmtree(VENV, ignore_errors=True)
        VENV.mkdir(exist_ok=True)
    UNFINISHED.touch()
    if not usable:
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)


def _install(requirements: Path) -> None:
    quiet = ["--quiet", "--quiet", "--disable-pip-version-check", "--no-input"]
    # Ctrl-C reaches pip directly; its warning about running as root doesn't apply here.
    subprocess.run(
        [PYTHON, "-m", "pip", "install", *quiet, "--require-hashes", "-r", str(requirements)],
        check=True,
        env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"},
    )


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
    except KeyboardInterrupt:
        sys.exit(130)
