"""Output of child processes to the terminal or a log file, in a way that never blocks a child."""

import contextlib
import errno
import json
import os
import select
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

_LINES_WAITING = 5_000
_LINE_BYTES = 8_192
_ERROR_CHARACTERS = 300
# A pipe reported writable by poll() accepts this many bytes without blocking.
_CHUNK_BYTES = select.PIPE_BUF
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


def find_error(line: bytes) -> bytes | None:
    """Return a short text of a JSON log line of level error or critical; None for other lines."""
    if not any(b'"level": "%b"' % level in line for level in (b"error", b"critical")):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # Mostly a line that was cut, because it is long.
        return line[:_ERROR_CHARACTERS]
    if not isinstance(record, dict) or str(record.get("level")) not in {"error", "critical"}:
        return None
    causes = str(record.get("exception") or "").splitlines()[-1:]
    text = ": ".join([*str(record.get("event", "")).splitlines()[:1], *causes])
    return f"{record['level']}: {text[:_ERROR_CHARACTERS]}".encode(errors="replace")


def make_printable(line: bytes) -> str:
    """Return the text of a line without characters that control a terminal."""
    text = line.decode(errors="replace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def add_name(name: str, line: bytes) -> bytes:
    return f"{name:<10} | ".encode() + line


class Lines:
    """Splits a child's output into lines, each of a limited length."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        while len(self._rest) > _LINE_BYTES:
            lines.append(self._rest[:_LINE_BYTES])
            self._rest = self._rest[_LINE_BYTES:]
        return [line[:_LINE_BYTES].rstrip(b"\r") for line in lines]

    def end(self) -> list[bytes]:
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


class Terminal:
    """The supervisor's standard output: lines are queued, and written without blocking."""

    def __init__(self, descriptor: int | None) -> None:
        self.descriptor = descriptor
        self._queue: deque[bytes] = deque()
        self._unwritten = b""
        self._dropped = 0

    @property
    def has_waiting(self) -> bool:
        return self.descriptor is not None and bool(self._queue or self._unwritten)

    def say(self, text: str) -> None:
        """Queue a message of the supervisor itself; unlike children's lines it is never dropped."""
        for line in text.splitlines():
            self._queue.append(f"switchgear | {line}\n".encode(errors="replace"))

    def show(self, block: str) -> None:
        """Queue a block of text, which is printed unchanged, without prefixes."""
        self._queue.append(block.encode(errors="replace"))

    def pass_on(self, name: str, line: bytes) -> bool:
        """Queue a line of the child `name`; drop it and return False if too many are queued."""
        if len(self._queue) >= _LINES_WAITING:
            self._dropped += 1
            return False
        if self._dropped:
            self.say(f"{self._dropped} lines were dropped: the reader is gone or the disk is full")
            self._dropped = 0
        self._queue.append(add_name(name, f"{make_printable(line)}\n".encode()))
        return True

    def write_waiting(self) -> None:
        """Write as many of the queued lines as the terminal accepts now."""
        if self.descriptor is None:
            self._queue.clear()
            return
        poll = select.poll()
        poll.register(self.descriptor, select.POLLOUT)
        try:
            while self.has_waiting and poll.poll(0):
                while self._queue and len(self._unwritten) < _CHUNK_BYTES:
                    self._unwritten += self._queue.popleft()
                written = os.write(self.descriptor, self._unwritten[:_CHUNK_BYTES])
                self._unwritten = self._unwritten[written:]
        except OSError as error:
            self._dropped += self._unwritten.count(b"\n") + len(self._queue)
            self._queue.clear()
            self._unwritten = b""
            if error.errno not in DISK_ERRORS:  # The reader is gone.
                self.descriptor = None

    def drain(self, seconds: float) -> None:
        """Write all queued lines, for at most `seconds`."""
        deadline = time.monotonic() + seconds
        while self.has_waiting and time.monotonic() < deadline:
            self.write_waiting()
            time.sleep(0.01 if self.has_waiting else 0)


class RotatingFile:
    """A log file with rotation: previous files are kept as `postgres.log.1` and so on.

    Lines that can't be written, as on a full disk, are counted; `say` is called at the first one.
    """

    def __init__(
        self,
        path: Path,
        *,
        file_bytes: int = 5_000_000,
        kept: int = 3,
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._path = path
        self._file_bytes = file_bytes
        self._kept = kept
        self._say = say
        self._file: BinaryIO | None = None
        self._lost = 0

    def write_line(self, line: bytes) -> bool:
        """Write a line; return False if it is lost."""
        try:
            self._write(line + b"\n")
        except OSError as error:
            self.close()
            if not self._lost:
                self._say(
                    f"{self._path.name} can't be written: {error.strerror}."
                    " Until it can, its lines appear here."
                )
            self._lost += 1
            return False
        return True

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()

    def _write(self, line: bytes) -> None:
        file = self._open()
        if file.tell() + len(line) > self._file_bytes:
            self.close()
            self._rotate()
            file = self._open()
        if self._lost:
            file.write(b"%d lines could not be written\n" % self._lost)
        if file.write(line) < len(line):  # The next write raises the error.
            file.write(line)
        self._lost = 0

    def _open(self) -> BinaryIO:
        if self._file is None:
            # Unbuffered, because a buffered write would fail at a later time.
            self._file = cast("BinaryIO", self._path.open("ab", buffering=0))
        return self._file

    def _rotate(self) -> None:
        for number in range(self._kept - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            if older.exists():
                older.replace(self._path.with_name(f"{self._path.name}.{number + 1}"))
        self._path.replace(self._path.with_name(f"{self._path.name}.1"))
