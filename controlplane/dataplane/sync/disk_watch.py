"""Monitor of the data directory's disk: full, read-only, failing, or not writable.

The data plane runs without a disk, but embedded PostgreSQL and Redis need it, and so does the
signed copy for a restart.
"""

import asyncio
import errno
import os
from dataclasses import replace
from pathlib import Path

from controlplane.core.degradation_levels import CRITICAL, DEGRADED, Cause
from controlplane.dataplane.state import State

LOOK_SECONDS = 3.0
MIN_FREE_BYTES = 16 * 1024 * 1024  # PostgreSQL writes its log in segments of this size.
MIN_FREE_RATIO = 0.05
"""Minimum free share of a small disk, where it is less than `MIN_FREE_BYTES`."""

_WORKS = ("Snapshots, streams and checks from memory",)
FULL = Cause(
    CRITICAL,
    "disk",
    "The disk of the data directory is full. Free some space; the rest recovers automatically.",
    fails=("Embedded PostgreSQL and Redis, sooner or later", "Saving a copy for restarts"),
    works=_WORKS,
)
READ_ONLY = replace(
    FULL,
    text=(
        "The disk of the data directory is read-only. Make it writable; the rest recovers"
        " automatically."
    ),
)
FAILING = replace(FULL, text="The disk of the data directory reports errors. Replace it.")
FORBIDDEN = Cause(
    DEGRADED,
    "disk",
    "This process can't write to its folder snapshot/. Change its owner to the process's user.",
    fails=("Saving a copy for restarts",),
    works=_WORKS,
)
_CAUSES = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EROFS: READ_ONLY,
    errno.EIO: FAILING,
    errno.EACCES: FORBIDDEN,
    errno.EPERM: FORBIDDEN,
}


def find_disk_problem(folder: Path, save_errno: int | None) -> Cause | None:
    """Return the problem of the disk of `folder`, if any.

    `save_errno` is the `errno` of the last attempt to save, None if it succeeded.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        status = os.statvfs(folder)
    except OSError as error:
        return _CAUSES.get(error.errno or 0)
    if status.f_flag & os.ST_RDONLY:
        return READ_ONLY
    needed = min(MIN_FREE_BYTES, status.f_blocks * status.f_frsize * MIN_FREE_RATIO)
    if status.f_bavail * status.f_frsize < needed or (status.f_files and not status.f_favail):
        return FULL
    return _CAUSES.get(save_errno or 0)


async def watch_disk(folder: Path | None, state: State) -> None:
    """Update `state.disk` until canceled; the disk is checked in a thread, because it may hang."""
    while folder is not None:
        state.disk = await asyncio.to_thread(find_disk_problem, folder, state.save_errno)
        await asyncio.sleep(LOOK_SECONDS)
