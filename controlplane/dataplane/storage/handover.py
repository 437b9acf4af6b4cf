"""The handover of the console's port from the stand-in to the web process.

Both listen on it for a moment, and the kernel gives each a share of the connections. The stand-in
holds a lock for as long as it runs, and the web process is not ready before the lock is free.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

_PATH = Path("run", "stand-in.lock")


def hold_lock(data_dir: Path) -> None:
    """Hold the lock until this process ends; without effect on a read-only disk."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError):
        fcntl.flock(os.open(data_dir / _PATH, flags, 0o600), fcntl.LOCK_EX)


def is_pending(data_dir: Path) -> bool:
    """Return True while a stand-in runs on this data directory."""
    try:
        descriptor = os.open(data_dir / _PATH, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
