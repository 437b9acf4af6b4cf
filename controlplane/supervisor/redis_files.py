"""Repairs the append-only files of the embedded Redis: `python -m … DIRECTORY STEP`.

Redis refuses to start on a file with a damaged byte, and `redis-check-aof --fix` drops everything
after it. This module drops only the damaged commands. STEP 1 keeps the dump and all readable
commands. If Redis refuses the result, STEP 2 keeps the commands without the dump, and after that
STEP 3 starts empty. The newest `MAX_KEPT` damaged directories are kept under `redis-damaged/`.
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
# A damaged length may extend into the next command; its result then has no valid command name.
_NAME = re.compile(rb"\$\d{1,2}\r\n[A-Za-z][A-Za-z.|_-]*\r\n")
_ARGUMENT = re.compile(rb"\$(\d{1,9})\r\n")
_COMMENT = re.compile(rb"#[^\r\n]*\r\n")
_FIRST_COMMAND = b"*2\r\n$6\r\nSELECT\r\n"
_DUMP = (b"REDIS", b"VALKEY")
_DUMP_END = 0xFF
_CHECKSUM_BYTES = 8
# Dropped, because a transaction without its end would swallow all later commands.
_TRANSACTION = (b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n")


def repair(directory: Path, step: int, now: datetime) -> str:
    """Repair Redis's files by `step` 1, 2 or 3; return a report. On OSError nothing is changed."""
    archive = directory.with_name(f"{directory.name}-damaged")
    archived = archive / now.strftime("%Y%m%dT%H%M%S.%fZ")
    # Later steps start from the original files, not from the result that Redis refused.
    source = directory if step == 1 else max(archive.iterdir())
    draft = directory.with_name(f"{directory.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    try:
        dropped = _write(source, draft, step)
        archive.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    if source == directory:
        directory.rename(archived)
        source = archived
    else:
        shutil.rmtree(directory)
    draft.rename(directory)
    for old in sorted(archive.iterdir())[:-MAX_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    loss = {
        1: f"{dropped} damaged bytes were dropped, with any dead letters in them.",
        2: f"The database dump and {dropped} damaged bytes were dropped.",
        3: "Redis starts empty; dead letters of services are only in the damaged files.",
    }
    return f"Redis could not load its files. The damaged files are kept in {source}. {loss[step]}"


def _write(source: Path, target: Path, step: int) -> int:
    """Copy the files' content that `step` keeps to `target`; return the number of dropped bytes."""
    if step == 3:
        return 0
    if step == 2:
        contents = [_commands_after_dump(path.read_bytes()) for path in _command_files(source)]
        with (target / _FILE).open("wb") as file:
            return sum(_copy_commands(content, file.write) for content in contents)
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if path.is_dir():
            copy.mkdir(mode=0o700)
        elif path not in _command_files(source):
            shutil.copyfile(path, copy)
    dropped = 0
    for path in _command_files(source):
        content = path.read_bytes()
        tail = _commands_after_dump(content)
        with (target / path.relative_to(source)).open("wb") as file:
            file.write(content[: len(content) - len(tail)])
            dropped += _copy_commands(tail, file.write)
    return dropped


def _command_files(source: Path) -> list[Path]:
    """Return the append-only files with commands, oldest first."""
    parts = (source / _FOLDER).glob(f"{_FILE}.*.incr.aof")
    numbered = sorted(parts, key=lambda path: int(path.name.split(".")[2]))
    old = source / _FILE
    return [*([old] if old.is_file() else []), *numbered]


def _commands_after_dump(content: bytes) -> bytes:
    """Return the commands in a file's content, without the database dump that may precede them."""
    if not content.startswith(_DUMP):
        return content
    at = content.find(_FIRST_COMMAND)
    while at >= 0 and content[at - _CHECKSUM_BYTES - 1] != _DUMP_END:
        at = content.find(_FIRST_COMMAND, at + 1)
    return content[at:] if at >= 0 else b""


def _copy_commands(content: bytes, write: Callable[[bytes], object]) -> int:
    copied = 0
    for start, end in _find_commands(content):
        copied += end - start
        command = content[start:end]
        if command.upper() not in _TRANSACTION:
            write(command)
    return len(content) - copied


def _find_commands(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each readable command in `content`, skipping damaged parts."""
    at = 0
    while at < len(content):
        end = _end_of_command(content, at)
        if end is not None:
            yield at, end
            at = end
            continue
        match = _COMMAND.search(content, at + 1)
        at = match.start() if match else len(content)


def _end_of_command(content: bytes, at: int) -> int | None:
    if comment := _COMMENT.match(content, at):
        return comment.end()
    match = _COMMAND.match(content, at)
    if match is None or not _NAME.match(content, match.end()):
        return None
    end = match.end()
    for _ in range(int(match[1])):
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
        sys.exit(f"Redis could not load its files, and they can't be repaired: {error}")
