"""The file lock that a documentation build holds while it runs."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def hold_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of the site in `folder`; wait for another build to end."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _lock_path(folder).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:  # Closing the file isn't enough if a child process has inherited it.
            fcntl.flock(lock, fcntl.LOCK_UN)


def is_held(folder: Path) -> bool:
    """Return True while a build of the site in `folder` is running on this machine."""
    try:
        with _lock_path(folder).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # No build has ever begun.
        return False
    return False


def _lock_path(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")
