"""Lock for the handover of the console's port from the stand-in to the web process.

For a moment both listen on the port, and the kernel distributes connections among them. The
stand-in holds the lock while it runs; the web process is not ready before the lock is free.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

_PATH = Path("run", "stand-in.lock")


def hold_lock(data_dir: Path) -> None:
    """Wait for the handover lock, and hold it until this process ends.

    Do nothing on a read-only disk.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError):
        fcntl.flock(os.open(data_dir / _PATH, flags, 0o600), fcntl.LOCK_EX)


def is_pending(data_dir: Path) -> bool:
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
