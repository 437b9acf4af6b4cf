"""Background task that saves the state to disk, and restores it at the start."""

import asyncio
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
from controlplane.dataplane.storage.snapshot_file import PoliciesDisk, SnapshotDisk

from .disk_writes import WriteAhead, ignore_saved, save_changes

REST_SECONDS = 2.0
"""Pause between two writes of policies, which can be large."""

log = structlog.get_logger(__name__)


class SnapshotKeeper:
    """Background task that saves each snapshot before it is served, and later the whole state.

    The state is saved after changes, and every 30 s.
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
        self._ahead = WriteAhead(state.now)
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
        """Save a snapshot before it is served, unless only its signature is new."""
        before = self._state.published
        if self._disks and (before is None or before.publication != copy.publication):
            save = self._disks[0].save_latest
            await self._ahead.save(partial(save, copy.publication, copy.body))

    async def run(self) -> None:
        if self._disks is None:
            return
        state, (disk, policies_disk) = self._state, self._disks
        await asyncio.gather(
            save_changes(
                state,
                disk,
                partial(collect_state, state),
                state.changed,
                on_saved=self._on_saved,
            ),
            save_changes(
                state,
                policies_disk,
                self._policies_to_save,
                state.config_changed,
                rest_seconds=REST_SECONDS,
            ),
        )

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
    state.install_tokens(saved.revision, saved.tokens, saved.codes, saved.owners)
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
        owners=state.owners,
        closed=state.orders.closed,
        settled=state.orders.settled,
        revision=state.revision,
        known=state.known,
        registrations=state.registrations,
        left_epochs=state.left_epochs,
        confirmed_at=state.wall() - timedelta(seconds=state.age_seconds()),
    )
