"""One run per data directory: a file lock that dies with its process, however that ends."""

import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path

from controlplane.supervisor.failure import CannotRun

# Younger than this, a folder may just not have got its lock yet.
_SURELY_LOCKED_SECONDS = 600


class Busy(CannotRun):
    """Another run holds the lock."""


class Lock:
    """An exclusive lock on `path`, held until `release` or the end of this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = _acquire(path)

    def release(self) -> None:
        # Unlinked while still held: whoever waits notices that the path leads elsewhere.
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the folders `prefix*` under `parent` whose run was killed: their `lock` is free."""
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError, Busy):
            found = folder.stat()
            young = time.time() - found.st_mtime < _SURELY_LOCKED_SECONDS
            if found.st_uid == os.geteuid() and not young:
                lock = Lock(folder / "lock")
                shutil.rmtree(folder, ignore_errors=True)
                lock.release()


def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            who = f"process {holder}" if holder else "another process"
            raise Busy(f"already running here: {who} holds {path}", exit_code=2) from None
        if _is_still(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            return descriptor
        os.close(descriptor)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
