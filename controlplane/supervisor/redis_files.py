"""Repair the append-only files of the embedded Redis: `python -m … DIRECTORY STEP`.

Redis refuses to start on a file with one damaged byte, and `redis-check-aof --fix` drops everything
after it. This module drops only the damaged commands. Each step is tried if Redis still refuses the
result of the one before:

1. keep the database dump and every readable command;
2. keep every readable command, without the dump;
3. start empty.

The damaged directory is kept beside it, under `redis-damaged/` and a timestamp; the newest
`MAX_KEPT` of them stay.
"""

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

MAX_KEPT = 5
STEPS = (1, 2, 3)
_FILE, _FOLDER = "appendonly.aof", "appendonlydir"
_COMMAND = re.compile(rb"\*(\d{1,7})\r\n(?=\$)")
# Without this check, a wrong length that runs into the next command yields an unknown command.
_NAME = re.compile(rb"\$\d{1,2}\r\n[A-Za-z][A-Za-z.|_-]*\r\n")
_ARGUMENT = re.compile(rb"\$(\d{1,9})\r\n")
_COMMENT = re.compile(rb"#[^\r\n]*\r\n")
_FIRST_COMMAND = b"*2\r\n$6\r\nSELECT\r\n"
_DUMP = (b"REDIS", b"VALKEY")
_DUMP_END = 0xFF
_CHECKSUM_BYTES = 8
# A transaction whose end is lost would swallow every later command.
_TRANSACTION = (b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n")


def repair(directory: Path, step: int, now: datetime) -> str:
    """Apply `step` to the files in `directory` and return a report for the operator.

    Raises OSError, with nothing changed, if the disk does not take the result.
    """
    kept = directory.with_name(f"{directory.name}-damaged")
    aside = kept / now.strftime("%Y%m%dT%H%M%S.%fZ")
    # Later steps start from the original files, not from the result that Redis refused.
    source = directory if step == 1 else max(kept.iterdir())
    draft = directory.with_name(f"{directory.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    try:
        dropped = _write(source, draft, step)
        kept.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    if source == directory:
        directory.rename(aside)
        source = aside
    else:
        shutil.rmtree(directory)
    draft.rename(directory)
    for old in sorted(kept.iterdir())[:-MAX_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return f"Redis refused its files. The damaged ones are kept in {source}. {_said(step, dropped)}"


def _said(step: int, dropped: int) -> str:
    if step == 1:
        return f"{dropped} damaged bytes were left out, and any dead letters in them."
    if step == 2:
        return f"The database dump and {dropped} damaged bytes were left out."
    return "Redis starts empty; dead letters of services are only in the damaged files."


def _write(source: Path, target: Path, step: int) -> int:
    """Write what `step` keeps of `source`; returns the number of bytes left out."""
    if step == 3:
        return 0
    if step == 2:
        contents = [_tail(path.read_bytes()) for path in _logs(source)]
        with (target / _FILE).open("wb") as file:
            return sum(_copy_commands(content, file.write) for content in contents)
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if path.is_dir():
            copy.mkdir(mode=0o700)
        elif path not in _logs(source):
            shutil.copyfile(path, copy)
    dropped = 0
    for path in _logs(source):
        content = path.read_bytes()
        tail = _tail(content)
        with (target / path.relative_to(source)).open("wb") as file:
            file.write(content[: len(content) - len(tail)])
            dropped += _copy_commands(tail, file.write)
    return dropped


def _logs(source: Path) -> list[Path]:
    """Return the files of commands, the oldest first."""
    parts = (source / _FOLDER).glob(f"{_FILE}.*.incr.aof")
    numbered = sorted(parts, key=lambda path: int(path.name.split(".")[2]))
    old = source / _FILE
    return [*([old] if old.is_file() else []), *numbered]


def _tail(content: bytes) -> bytes:
    """Return the commands after the dump that a rewritten file begins with."""
    if not content.startswith(_DUMP):
        return content
    at = content.find(_FIRST_COMMAND)
    while at >= 0 and content[at - _CHECKSUM_BYTES - 1] != _DUMP_END:
        at = content.find(_FIRST_COMMAND, at + 1)
    return content[at:] if at >= 0 else b""


def _copy_commands(content: bytes, write: Callable[[bytes], object]) -> int:
    copied = 0
    for start, end in _commands(content):
        copied += end - start
        command = content[start:end]
        if command.upper() not in _TRANSACTION:
            write(command)
    return len(content) - copied


def _commands(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each readable command starts and ends; what can't be read is skipped."""
    at = 0
    while at < len(content):
        end = _end_of_command(content, at)
        if end is not None:
            yield at, end
            at = end
            continue
        found = _COMMAND.search(content, at + 1)
        at = found.start() if found else len(content)


def _end_of_command(content: bytes, at: int) -> int | None:
    if comment := _COMMENT.match(content, at):
        return comment.end()
    found = _COMMAND.match(content, at)
    if found is None or not _NAME.match(content, found.end()):
        return None
    end = found.end()
    for _ in range(int(found[1])):
        argument = _ARGUMENT.match(content, end)
        if argument is None:
            return None
        end = argument.end() + int(argument[1])
        if content[end : end + 2] != b"\r\n":
            return None
        end += 2
    return end


if __name__ == "__main__":
    try:
        print(repair(Path(sys.argv[1]), int(sys.argv[2]), datetime.now(UTC)))  # noqa: T201
    except OSError as error:
        sys.exit(f"Redis refused its files, and they can't be repaired: {error}")
