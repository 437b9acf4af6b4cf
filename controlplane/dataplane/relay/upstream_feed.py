"""Keeps a relay's state up to date from its upstream."""

from collections.abc import Coroutine
from typing import Any

from controlplane.dataplane.config import RelayConfig
from controlplane.dataplane.state import State
from controlplane.dataplane.sync import disk_watch

from .forwarder import Forwarder
from .orders import RelayOrders
from .relay_ledger import RelayLedger


class UpstreamFeed:
    """The tasks of a relay, which has no database and no Redis."""

    def __init__(self, config: RelayConfig, state: State, relay_orders: RelayOrders) -> None:
        self._config = config
        self._state = state
        self._relay_orders = relay_orders
        self._ledger = RelayLedger(state.wall)
        state.ledger = self._ledger

    async def restore(self) -> None:
        """Serve the bundle saved on disk."""

    def tasks(self) -> tuple[Coroutine[Any, Any, None], ...]:
        return (
            disk_watch.watch_disk(self._config.folder, self._state),
            *self._relay_orders.tasks(),
            self._ledger.run(self._config),
            Forwarder(self._config, self._state, self._ledger).run(),
        )

    async def wait_until_read(self) -> None:
        """Wait for the first bundle, at most 2 s; raise TimeoutError."""

    async def report_stop(self) -> None:
        """Tell the upstream that this process stops."""
