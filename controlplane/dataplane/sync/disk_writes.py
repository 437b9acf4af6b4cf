"""Saves content to disk before it is served, and again after changes, despite a failing disk."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from controlplane.dataplane.state import State
from controlplane.dataplane.storage.signed_file import SavedContent, SignedFiles, T

AGAIN_SECONDS = 30.0
MAX_DELAY_SECONDS = 0.05
"""Longest time that new content waits for the disk before it is served."""

log = structlog.get_logger(__name__)


async def ignore_saved(_saved: SavedContent) -> None:
    """Do nothing after a save."""


class WriteAhead:
    """Saves content before it is served, in case the process is killed soon after.

    A full, frozen or missing disk delays serving by at most `MAX_DELAY_SECONDS`, once.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._saving: asyncio.Future[None] | None = None
        self._is_slow = False
        """True if the last write took longer than `MAX_DELAY_SECONDS`."""

    async def save(self, write: Callable[[], None]) -> None:
        """Run `write` in a thread, and wait a moment for it; errors are only logged.

        Only one write runs at a time; after a slow write, the next one is not awaited.
        """
        if self._saving is not None and not self._saving.done():
            return
        saving = self._saving = asyncio.ensure_future(asyncio.to_thread(write))
        began = self._now()

        def record_saved(saved: asyncio.Future[None]) -> None:
            self._is_slow = self._now() - began > MAX_DELAY_SECONDS
            if not saved.cancelled() and (error := saved.exception()) is not None:
                log.debug(
                    "dataplane.latest_save_failed", kind=type(error).__name__, error=str(error)
                )

        saving.add_done_callback(record_saved)
        if not self._is_slow:
            await asyncio.wait([saving], timeout=MAX_DELAY_SECONDS)


async def save_changes(
    state: State,
    disk: SignedFiles[T],
    present: Callable[[], T | None],
    changed: asyncio.Event,
    *,
    rest_seconds: float = 0.0,
    on_saved: Callable[[T], Awaitable[None]] = ignore_saved,
) -> None:
    """Save what `present` returns after each change, and every 30 s, until canceled.

    `rest_seconds` is the pause between two writes. `on_saved` is called after each save.
    """
    failing = False
    while True:
        changed.clear()
        saved = present()
        if saved is not None:
            try:
                await asyncio.to_thread(disk.save, saved)
                await on_saved(saved)
                failing, state.save_errno = False, None
            except Exception as error:  # Any error: the next save may succeed.
                if not failing:
                    details = {"kind": type(error).__name__, "error": str(error)}
                    log.warning("dataplane.save_failed", **details)
                failing = True
                state.save_errno = error.errno if isinstance(error, OSError) else None
            await asyncio.sleep(rest_seconds)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(AGAIN_SECONDS):
                await changed.wait()
