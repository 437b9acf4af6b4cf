"""Background task that saves the state to disk, and restores it at the start."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import structlog

from controlplane.dataplane.config import ServingConfig
from controlplane.dataplane.memory.order_set import OrderSet
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.state import State
from controlplane.dataplane.storage.saved_policies import SavedPolicies
from controlplane.dataplane.storage.saved_snapshot import SavedState
from controlplane.dataplane.storage.signed_file import SavedContent, SignedFiles, T
from controlplane.dataplane.storage.snapshot_file import PoliciesDisk, SnapshotDisk

AGAIN_SECONDS = 30.0
MAX_DELAY_SECONDS = 0.05
"""Longest time that a new snapshot waits for the disk before it is served."""
REST_SECONDS = 2.0
"""Pause between two writes of policies, which can be large."""

log = structlog.get_logger(__name__)


async def ignore_saved(_saved: SavedContent) -> None:
    """Do nothing after a save."""


class SnapshotKeeper:
    """Background task that saves each snapshot before it is served, and later the whole state.

    The state is saved after changes, and every 30 s. A full, frozen or missing disk delays serving
    by at most `MAX_DELAY_SECONDS`, once.
    """

    def __init__(
        self,
        config: ServingConfig,
        state: State,
        on_saved: Callable[[SavedState], Awaitable[None]] = ignore_saved,
    ) -> None:
        self._state = state
        self._on_saved = on_saved
        """Called after each durable save of the state."""
        self._disks: tuple[SnapshotDisk, PoliciesDisk] | None = None
        self._saving_latest: asyncio.Future[None] | None = None
        self._is_slow = False
        """True if the last write before serving took longer than `MAX_DELAY_SECONDS`."""
        if (folder := config.folder) is not None:
            key, older = config.signing_key, config.older_keys
            self._disks = (
                SnapshotDisk(folder, key, older_keys=older),
                PoliciesDisk(folder, key, older_keys=older),
            )

    async def restore(self) -> None:
        if self._disks is None:
            return
        disk, policies_disk = self._disks
        saved = await asyncio.to_thread(disk.load)
        if saved is None:
            return
        state = self._state
        restore_state(state, saved)
        log.info(
            "dataplane.restored",
            version=saved.publication.version,
            age_seconds=state.age_seconds(),
        )
        saved_policies = await asyncio.to_thread(policies_disk.load)
        if saved_policies is not None:
            state.install_policies(saved_policies.policies)
            # Policies are saved only when they change; the copy's time tells their age.
            state.confirm_policies(state.now() - state.age_seconds())
            same = saved_policies.epoch == saved.publication.epoch
            state.install_causes(saved_policies.revision if same else -1, saved_policies.causes)

    async def save_before_serving(self, copy: Copy) -> None:
        """Save a snapshot before it is served, in case the process is killed soon after.

        The process serves it despite errors. Only one write runs at a time; after a slow write, the
        next one is not awaited.
        """
        before = self._state.published
        if not self._disks or (before is not None and before.publication == copy.publication):
            return
        if self._saving_latest is not None and not self._saving_latest.done():
            return
        saving = asyncio.to_thread(self._disks[0].save_latest, copy.publication, copy.body)
        self._saving_latest = asyncio.ensure_future(saving)
        began = self._state.now()

        def record_saved(saved: asyncio.Future[None]) -> None:
            self._is_slow = self._state.now() - began > MAX_DELAY_SECONDS
            if not saved.cancelled() and (error := saved.exception()) is not None:
                log.debug(
                    "dataplane.latest_save_failed", kind=type(error).__name__, error=str(error)
                )

        self._saving_latest.add_done_callback(record_saved)
        if not self._is_slow:
            await asyncio.wait([self._saving_latest], timeout=MAX_DELAY_SECONDS)

    async def run(self) -> None:
        if self._disks is None:
            return
        state, (disk, policies_disk) = self._state, self._disks
        policies = policies_disk, self._policies_to_save, state.config_changed, REST_SECONDS
        await asyncio.gather(
            self._save_changes(
                disk, partial(collect_state, state), state.changed, 0.0, self._on_saved
            ),
            self._save_changes(*policies, ignore_saved),
        )

    async def _save_changes(
        self,
        disk: SignedFiles[T],
        present: Callable[[], T | None],
        changed: asyncio.Event,
        rest_seconds: float,
        on_saved: Callable[[T], Awaitable[None]],
    ) -> None:
        failing = False
        while True:
            changed.clear()
            saved = present()
            if saved is not None:
                try:
                    await asyncio.to_thread(disk.save, saved)
                    await on_saved(saved)
                    failing, self._state.save_errno = False, None
                except Exception as error:  # Any error: the next save may succeed.
                    if not failing:
                        details = {"kind": type(error).__name__, "error": str(error)}
                        log.warning("dataplane.save_failed", **details)
                    failing = True
                    self._state.save_errno = error.errno if isinstance(error, OSError) else None
                await asyncio.sleep(rest_seconds)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    await changed.wait()

    def _policies_to_save(self) -> SavedPolicies | None:
        """Return the policies and causes to save; None if not loaded, or if outdated."""
        state, policies = self._state, self._state.policies
        if state.copy is None or policies is None or state.degradation < 0:
            return None
        if policies.epoch in state.left_epochs:
            return None
        left = state.left_epochs | {state.copy.publication.epoch}
        return SavedPolicies(
            policies=policies,
            revision=state.degradation,
            causes=state.causes,
            left_epochs=left - {policies.epoch},
            confirmed_at=state.wall() - timedelta(seconds=state.policies_age_seconds()),
        )


def restore_state(state: State, saved: SavedState) -> None:
    """Serve the saved state until the database has been read."""
    listed = OrderSet(closed=saved.closed, settled=saved.settled).listed_ids(state.wall())
    copy = Copy.render(saved.publication, saved.entries, is_kept=True, orders=listed)
    state.left_epochs = saved.left_epochs
    state.orders = OrderSet(settled=saved.settled)
    age = max(timedelta(), state.wall() - saved.confirmed_at)
    confirmed_at = state.now() - age.total_seconds()
    state.install_copy(copy, confirmed_at=confirmed_at, closed=saved.closed)
    state.install_tokens(saved.revision, saved.tokens, saved.codes)
    state.install_known(saved.registrations, saved.known)


def collect_state(state: State) -> SavedState | None:
    """Return the state to save; None until the database has confirmed all of it."""
    published = state.published
    if published is None or state.tokens is None or not state.heard_database:
        return None
    if state.revision < 1 or state.registrations < 0:
        return None  # A new epoch has begun and is not read completely.
    return SavedState(
        publication=published.publication,
        entries=tuple(published.entries.values()),
        tokens=state.tokens,
        codes=state.codes,
        closed=state.orders.closed,
        settled=state.orders.settled,
        revision=state.revision,
        known=state.known,
        registrations=state.registrations,
        left_epochs=state.left_epochs,
        confirmed_at=state.wall() - timedelta(seconds=state.age_seconds()),
    )
