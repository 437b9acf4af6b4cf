"""A lock on a file, which the kernel releases when the locking process ends."""

import contextlib
import fcntl
import os
import shutil
import stat
import time
from pathlib import Path

from .failure import CannotRun
from .output import DISK_ERRORS

# A younger folder may not be locked yet.
_MIN_ABANDONED_SECONDS = 600


class LockHeld(CannotRun):
    """Raised if another run holds the lock."""


class Lock:
    """An exclusive lock on the file `path`; raises `LockHeld` if another run holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = _acquire(path)

    def release(self) -> None:
        # Unlinked while locked, so that waiting processes notice that the path is another file. On
        # a read-only disk the unlocked file stays, which does no harm.
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove folders `prefix*` under `parent` that killed runs left behind: their lock is free."""
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError, LockHeld):
            status = folder.stat()
            is_young = time.time() - status.st_mtime < _MIN_ABANDONED_SECONDS
            if status.st_uid == os.geteuid() and not is_young:
                lock = Lock(folder / "lock")
                shutil.rmtree(folder, ignore_errors=True)
                lock.release()


def _acquire(path: Path) -> int:
    while True:
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = ""
            with contextlib.suppress(IsADirectoryError):
                holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            who = f"process {holder}" if holder else "another process"
            raise LockHeld(f"already running here: {who} holds {path}", exit_code=2) from None
        if _is_current(path, descriptor):
            with contextlib.suppress(OSError):  # The process id is only for people.
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"{os.getpid()}\n".encode())
            return descriptor
        os.close(descriptor)


def _open(path: Path) -> int:
    """Return a descriptor of the lock file, which is created if it is missing.

    If the disk is full or read-only, open the file for reading; if it is missing, its folder.
    """
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        return os.open(path if path.exists() else path.parent, os.O_RDONLY)


def _is_current(path: Path, descriptor: int) -> bool:
    opened = os.fstat(descriptor)
    with contextlib.suppress(FileNotFoundError):
        return stat.S_ISDIR(opened.st_mode) or os.path.samestat(path.stat(), opened)
    return False
