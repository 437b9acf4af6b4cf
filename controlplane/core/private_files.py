"""Files that only this user can access, written atomically. Blocking: use a thread."""

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

LOCK_SECONDS = 2.0


class InvalidFile(Exception):
    """A file that can't be accepted; the message is the reason, for the log."""


def read_file(path: Path, largest_bytes: int) -> bytes:
    """Return a regular file's bytes. Never block.

    Raise :class:`InvalidFile` if other users can access it or it is too large, else OSError.
    """
    with open(path, "rb", opener=_open_plainly) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InvalidFile("it is not a regular file")
        if stat.S_IMODE(status.st_mode) & 0o077:
            raise InvalidFile("other users can read or write it; run chmod 600")
        content = file.read(largest_bytes + 1)
    if len(content) > largest_bytes:
        raise InvalidFile(f"it is larger than {largest_bytes} bytes")
    return content


def create_file(draft: Path, content: bytes, *, sync: bool) -> None:
    """Write a new file that only this user can access, with `sync` durably; replace an old draft.

    Raise OSError, without a file, if that fails.
    """
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


def create_once(path: Path, content: bytes) -> None:
    """Create a file durably, unless it exists; of several processes, one creates it."""
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    create_file(draft, content, sync=True)
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()
    sync_folder(path.parent)


@contextlib.contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; raise TimeoutError if another process holds it for 2 s."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        ends = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > ends:
                    reason = "another process holds the lock"
                    raise TimeoutError(errno.ETIMEDOUT, reason) from None
                time.sleep(0.02)
            else:
                break
        yield
    finally:
        os.close(descriptor)  # Releases the lock.


def sync_folder(folder: Path) -> None:
    """Make new names in a folder durable; raise OSError if that fails."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_identity(path: Path) -> tuple[int, ...]:
    """Return a value that changes whenever the file's content or mode changes."""
    status = path.lstat()
    return status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns


def _open_plainly(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
