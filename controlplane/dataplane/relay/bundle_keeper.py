"""Background task of a relay that saves the last bundle to disk, and restores it at the start."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import structlog

from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.state import State
from controlplane.dataplane.sync.disk_writes import WriteAhead, ignore_saved, save_changes

from .bundle_disk import BundleDisk, SavedBundle
from .difference import ReceivedBundle
from .installation import install_bundle
from .trusted_keys import Keys

REST_SECONDS = 2.0
"""Pause between two writes of the bundle, which can be large."""

log = structlog.get_logger(__name__)


class BundleKeeper:
    """Background task that saves each bundle before it is served, and every 30 s its age."""

    def __init__(
        self,
        config: RelayConfig,
        state: State,
        trusted: Callable[[], Keys],
        on_saved: Callable[[SavedBundle], Awaitable[None]] = ignore_saved,
    ) -> None:
        self._state = state
        self._on_saved = on_saved
        self._ahead = WriteAhead(state.now)
        self._present: ReceivedBundle | None = None
        folder, key = config.folder, config.signing_key
        self._disk = None if folder is None else BundleDisk(folder, key, trusted)

    async def restore(self) -> ReceivedBundle | None:
        """Serve the bundle on disk, and return it; None without a valid one."""
        saved = None if self._disk is None else await asyncio.to_thread(self._disk.load)
        if saved is None:
            return None
        state = self._state
        age = max(timedelta(), state.wall() - saved.confirmed_at)
        confirmed_at = state.now() - age.total_seconds()
        self._present = saved.received
        state.left_epochs = saved.left_epochs
        install_bundle(state, saved.received, confirmed_at)
        state.confirm_policies(confirmed_at)
        head = saved.received.head
        version, age_seconds = head.publication.version, state.age_seconds()
        log.info("dataplane.restored", version=version, age_seconds=age_seconds)
        return saved.received

    async def save_before_serving(self, received: ReceivedBundle, confirmed_at: float) -> None:
        """Save a bundle before it is served; `confirmed_at` is monotonic."""
        self._present = received
        if self._disk is not None:
            saved = self._describe(received, self._state.now() - confirmed_at)
            await self._ahead.save(partial(self._disk.save, saved))

    async def run(self) -> None:
        if self._disk is not None:
            await save_changes(
                self._state,
                self._disk,
                self._collect,
                self._state.changed,
                rest_seconds=REST_SECONDS,
                on_saved=self._on_saved,
            )

    def _collect(self) -> SavedBundle | None:
        """Return what is to be saved; None until the upstream has confirmed it."""
        state, present = self._state, self._present
        if present is None or not state.heard_database:
            return None
        return self._describe(present, state.age_seconds())

    def _describe(self, received: ReceivedBundle, age_seconds: float) -> SavedBundle:
        state, epoch = self._state, received.head.publication.epoch
        left = state.left_epochs | received.head.left_epochs
        if state.published is not None:
            left |= {state.published.publication.epoch}
        return SavedBundle(
            received=received,
            left_epochs=left - {epoch},
            confirmed_at=state.wall() - timedelta(seconds=age_seconds),
        )
