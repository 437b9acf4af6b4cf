"""A signed file in a folder, with its previous version and a lock between processes.

A file that was cut off, altered, or made by anybody without the key is refused and logged, and the
other version is used. All this blocks: call it in a thread.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

import structlog

from .signature import InvalidFile

LOCK_SECONDS = 2.0
SKEW_SECONDS = 2.0  # Two clocks that agree may differ by this much.

_Identity = tuple[int, int, int, int]

log = structlog.get_logger(__name__)


T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class FileFormat(Generic[T]):
    """The names and functions for one kind of saved content.

    `names` are current, previous, draft and lock. `taken_at` returns when the content was
    confirmed, by the database's clock.
    """

    names: tuple[str, str, str, str]
    sign: Callable[[T, bytes], bytes]
    verify: Callable[[bytes, bytes], T]
    merged: Callable[[T, T], T]
    taken_at: Callable[[T], datetime]


class SignedFiles(Generic[T]):
    """A signed file in `folder`, which several processes of a host may share.

    Content signed with one of the `older_keys` is accepted, and signed with `key` when it is saved.
    """

    def __init__(
        self,
        folder: Path,
        key: bytes,
        form: FileFormat[T],
        largest_bytes: int,
        clock: Callable[[], datetime],
        older_keys: Sequence[bytes] = (),
    ) -> None:
        self._folder = folder
        self._form = form
        self._current, self._previous, self._draft, self._lock = (
            folder / name for name in form.names
        )
        self._key = key
        self._older_keys = older_keys
        self._needs_signing = False
        self._largest_bytes = largest_bytes
        self._clock = clock
        self._written: tuple[_Identity, T] | None = None

    def save(self, saved: T) -> None:
        """Write `saved` atomically, merged with what is on disk already (see `Form.merged`).

        Raises OSError, with the old file still in place, if the disk refuses the write, or if the
        content is too large to be read again.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        with self._locked():
            present = self._present()
            wanted = saved if present is None else self._form.merged(present, saved)
            if wanted == present and not self._needs_signing:
                return
            self._write_draft(self._form.sign(wanted, self._key))
            if present is not None:  # Keep a valid previous file.
                self._current.replace(self._previous)
            self._draft.replace(self._current)
            self._sync_folder()
            self._written = _identity(self._current), wanted
            self._needs_signing = False

    def load(self) -> T | None:
        """Return the current content if valid, else the previous one, else None."""
        for path in (self._current, self._previous):
            saved = self._read(path)
            if saved is not None:
                self._compare_clocks(path, saved)
                return saved
        return None

    def _present(self) -> T | None:
        """Return the content of `current`, from memory while the file is the one written last."""
        if self._written is not None:
            with contextlib.suppress(FileNotFoundError):
                if _identity(self._current) == self._written[0]:
                    return self._written[1]
        return self._read(self._current)

    def _read(self, path: Path) -> T | None:
        return self._accepted(path, self._verified)

    def _accepted(self, path: Path, verify: Callable[[bytes], R]) -> R | None:
        """Return the verified content of a file; None if absent, or refused and logged."""
        try:
            return verify(self._content(path))
        except FileNotFoundError:
            return None
        except InvalidFile as error:
            why = str(error)
        except OSError as error:
            link = error.errno == errno.ELOOP
            why = "it is a symbolic link" if link else str(error.strerror or error)
        log.error("dataplane.copy_refused", file=str(path), why=why)
        return None

    def _verified(self, content: bytes) -> T:
        self._needs_signing = False
        try:
            return self._form.verify(content, self._key)
        except InvalidFile:
            for key in self._older_keys:
                with contextlib.suppress(InvalidFile):
                    saved = self._form.verify(content, key)
                    self._needs_signing = True
                    return saved
            raise

    def _content(self, path: Path) -> bytes:
        """Return the bytes of a regular file that no other user may read; never blocks on open."""
        with open(path, "rb", opener=_open_plainly) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InvalidFile("it is not a plain file")
            if stat.S_IMODE(found.st_mode) & 0o077:
                raise InvalidFile("others may read or write it; chmod 600 it")
            content = file.read(self._largest_bytes + 1)
        if len(content) > self._largest_bytes:
            raise InvalidFile(f"it is larger than {self._largest_bytes} bytes")
        return content

    def _write_draft(self, content: bytes) -> None:
        self._write(self._draft, content, sync=True)

    def _write(self, draft: Path, content: bytes, *, sync: bool) -> None:
        """Write `content` to a new file, with fsync if `sync`. Raises OSError."""
        if len(content) > self._largest_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(self._current))
        draft.unlink(missing_ok=True)  # Left by a killed process.
        try:
            with open(draft, "xb", buffering=0, opener=_open_privately) as file:
                view = memoryview(content)
                while view:
                    view = view[file.write(view) :]
                if sync:
                    os.fsync(file.fileno())
        except OSError:
            draft.unlink(missing_ok=True)
            raise

    def _sync_folder(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the only writer; raise TimeoutError after `LOCK_SECONDS`.

        A frozen holder delays this save, not this process.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._lock, flags, 0o600)
        try:
            ends = time.monotonic() + LOCK_SECONDS
            while not _try_lock(descriptor):
                if time.monotonic() > ends:
                    raise TimeoutError(errno.ETIMEDOUT, "another process keeps the lock")
                time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)  # Releases the lock.

    def _compare_clocks(self, path: Path, saved: T) -> None:
        ahead_seconds = (self._form.taken_at(saved) - self._clock()).total_seconds()
        if ahead_seconds > SKEW_SECONDS:
            ahead = round(ahead_seconds, 1)
            log.warning("dataplane.copy_from_the_future", file=str(path), ahead_seconds=ahead)


def _identity(path: Path) -> _Identity:
    """Return a value that changes with every change to the file, its mode included."""
    found = path.lstat()
    return found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns


def _open_plainly(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
