"""Keeps a relay's state up to date from its upstream."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.emergency.service import EmergencyOrders
from controlplane.dataplane.state import State
from controlplane.dataplane.sync import disk_watch

from .bundle_keeper import BundleKeeper
from .follower import Follower
from .forwarder import Forwarder
from .lost_versions import SignedSnapshot, VersionFate
from .orders import RelayOrders
from .relay_ledger import RelayLedger
from .source import ReceivedSource
from .stream import RelayStreams
from .trusted_keys import TrustedKeys

FIRST_READ_SECONDS = 2.0
RESTORED_READ_SECONDS = 0.2
"""Longest wait for the upstream if there is a bundle on disk to serve."""


class UpstreamFeed:
    """The tasks of a relay, which has no database and no Redis."""

    def __init__(
        self,
        config: RelayConfig,
        state: State,
        orders: EmergencyOrders,
        relay_orders: RelayOrders,
        streams: RelayStreams,
    ) -> None:
        self._config = config
        self._state = state
        self._relay_orders = relay_orders
        self._ledger = RelayLedger(state.wall)
        self._forwarder = Forwarder(config, state, self._ledger)
        state.ledger, state.is_relay = self._ledger, True
        streams.source = source = ReceivedSource(state)
        self._keys = TrustedKeys(config.secrets, config.public_keys)
        self._keeper = BundleKeeper(config, state, lambda: self._keys.keys, orders.forget_old)
        self._follower = Follower(config, state, self._keys, self._keeper, source)
        self._follower.on_orders = relay_orders.receive_event

    async def restore(self) -> None:
        await asyncio.to_thread(self._keys.load)
        self._follower.resume_from(await self._keeper.restore())

    def tasks(self) -> tuple[Coroutine[Any, Any, None], ...]:
        return (
            self._follower.run(),
            self._keeper.run(),
            disk_watch.watch_disk(self._config.folder, self._state),
            *self._relay_orders.tasks(),
            self._ledger.run(self._config),
            self._forwarder.run(),
        )

    async def wait_until_read(self) -> None:
        """Wait for the first bundle or for the failure of all upstreams; raise TimeoutError."""
        is_restored = self._state.copy is not None
        async with asyncio.timeout(RESTORED_READ_SECONDS if is_restored else FIRST_READ_SECONDS):
            await self._follower.tried.wait()

    async def ask_version(self, served: SignedSnapshot) -> VersionFate:
        """Ask the upstream about a version that a relay behind this one serves."""
        return await self._follower.ask_version(served)

    async def report_stop(self) -> None:
        """Tell the upstream that this process stops, and release the spool."""
        await self._forwarder.report_stop()
        self._ledger.close()
