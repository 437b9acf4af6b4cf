"""Keeps on disk what a restart without a database has to know, and takes it up again."""

import asyncio
from datetime import timedelta

import structlog

from controlplane.dataplane.config import Config
from controlplane.dataplane.disk import Disk, Saved
from controlplane.dataplane.saved_parts import Away
from controlplane.dataplane.served_copy import Copy
from controlplane.dataplane.state import State

AGAIN_SECONDS = 30.0

log = structlog.get_logger(__name__)


class Keeper:
    """Writes each change soon after it is served, and every half minute how fresh it still is.

    A disk that is full, frozen or gone delays nobody: what is served does not wait for it.
    """

    def __init__(self, config: Config, state: State) -> None:
        self._state = state
        self._disk = None if config.folder is None else Disk(config.folder, config.signing_key)
        self._failing = False

    async def restore(self) -> None:
        """Serve what was kept, until the database answers."""
        if self._disk is None:
            return
        saved = await asyncio.to_thread(self._disk.load)
        if saved is None:
            return
        state = self._state
        copy = Copy.of(saved.publication, saved.entries, is_kept=True)
        state.left_epochs = saved.left_epochs
        age = max(timedelta(), state.wall() - saved.confirmed_at)
        state.install_copy(copy, confirmed_at=state.now() - age.total_seconds())
        state.install_tokens(saved.revision, saved.tokens)
        state.install_known(saved.registrations, saved.known)
        if saved.policies is not None:
            state.install_policies(saved.policies)
        if saved.away is not None:
            state.install_causes(*saved.away)
        log.info(
            "dataplane.restored", version=copy.publication.version, age_seconds=age.total_seconds()
        )

    async def run(self) -> None:
        """Save until cancelled."""
        if self._disk is None:
            return
        while True:
            self._state.changed.clear()
            saved = self._present()
            if saved is not None:
                await self._save(self._disk, saved)
            try:
                async with asyncio.timeout(AGAIN_SECONDS):
                    await self._state.changed.wait()
            except TimeoutError:
                continue

    async def _save(self, disk: Disk, saved: Saved) -> None:
        try:
            await asyncio.to_thread(disk.save, saved)
        except Exception as error:  # Whatever it is: the next save may fare better.
            if not self._failing:
                log.warning("dataplane.not_kept", kind=type(error).__name__, error=str(error))
            self._failing = True
        else:
            self._failing = False

    def _present(self) -> Saved | None:
        """What is served now, once the database has confirmed all of it."""
        state = self._state
        if state.copy is None or state.tokens is None or not state.heard_database:
            return None
        policies, epoch = state.policies, state.copy.publication.epoch
        if state.revision < 1 or min(state.registrations, state.degradation) < 0:
            return None  # A new epoch has begun and is not read whole.
        if policies is None or policies.epoch != epoch:
            return None
        return Saved(
            publication=state.copy.publication,
            entries=tuple(state.copy.entries.values()),
            tokens=state.tokens,
            revision=state.revision,
            known=state.known,
            registrations=state.registrations,
            left_epochs=state.left_epochs,
            confirmed_at=state.wall() - timedelta(seconds=state.age_seconds()),
            policies=policies,
            away=Away(state.degradation, state.causes),
        )
