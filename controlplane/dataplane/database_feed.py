"""Keeps a data plane's state up to date from PostgreSQL and Redis, and writes to PostgreSQL."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.config import Config
from controlplane.dataplane.postgres import database
from controlplane.dataplane.state import State

from .emergency.database_writer import DatabaseWriter
from .emergency.exchange import exchange_orders
from .emergency.peers import Peers
from .emergency.service import EmergencyOrders
from .ingest import processes
from .ingest.processes import ProcessStatus
from .relay.process_identity import ProcessIdentity
from .sync import disk_watch
from .sync.config_follower import ConfigFollower
from .sync.lost_version_reporter import LostVersionReporter
from .sync.refresher import Refresher, make_subscriber
from .sync.signing_key_watch import SigningKeyWatch
from .sync.snapshot_keeper import SnapshotKeeper

FIRST_READ_SECONDS = 2.0
STOP_SECONDS = 1.0
TOKEN_USE_SECONDS = 10.0

log = structlog.get_logger(__name__)


class DatabaseFeed:
    """The tasks of a data plane that has PostgreSQL and Redis."""

    def __init__(self, config: Config, state: State, orders: EmergencyOrders, peers: Peers) -> None:
        self._config = config
        self._state = state
        self._orders = orders
        self._peers = peers
        self._keys = SigningKeyWatch(config, state)
        self._identity = ProcessIdentity(config.plane)
        self._keeper = SnapshotKeeper(config, state, orders.forget_old)
        self._follower = ConfigFollower(config, state)
        self._refresher = Refresher(config, state, self._follower, self._keeper)

    async def restore(self) -> None:
        await self._keys.refresh()
        await self._keeper.restore()

    def tasks(self) -> tuple[Coroutine[Any, Any, None], ...]:
        config, state, orders = self._config, self._state, self._orders
        writer = DatabaseWriter(config, state, orders)
        orders.on_news = writer.wake
        wake = self._refresher.wake
        state.ledger.describe_process = partial(self._identity.describe, state)
        return (
            self._refresher.run(),
            self._follower.run(),
            make_subscriber(config.redis_url, wake, state.set_redis_reachable).run(),
            record_token_uses(config, state),
            state.ledger.run(config),
            self._keeper.run(),
            self._keys.run(),
            disk_watch.watch_disk(config.folder, state),
            writer.run(),
            LostVersionReporter(config, state).run(),
            *exchange_orders(config, self._peers, orders),
        )

    async def wait_until_read(self) -> None:
        """Wait until the first reads have succeeded or failed, at most 2 s; raise TimeoutError."""
        async with asyncio.timeout(FIRST_READ_SECONDS):
            await self._refresher.tried.wait()
            if self._state.database_reachable:
                await self._follower.tried.wait()

    async def report_stop(self) -> None:
        status = replace(self._identity.describe(self._state), is_stopped=True)
        try:
            await wait_at_most(STOP_SECONDS, self._write_status(status))
        except Exception as error:
            log.info("dataplane.stop_not_reported", kind=type(error).__name__, error=str(error))

    async def _write_status(self, status: ProcessStatus) -> None:
        connection = await database.connect(self._config)
        try:
            await processes.write_statuses(connection, [status])
        finally:
            connection.pgconn.finish()


async def record_token_uses(config: Config, state: State) -> None:
    """Write every `usage_seconds` which tokens were used, and for which services, until canceled.

    What can't be written is dropped: programs use their tokens again.
    """
    while True:
        await asyncio.sleep(config.usage_seconds)
        used, state.used_tokens = state.used_tokens, set()
        uses = state.callers.take_uses()
        if not state.database_reachable:
            continue
        try:
            if used:
                await wait_at_most(TOKEN_USE_SECONDS, database.record_token_use(config, used))
            if uses:
                await wait_at_most(TOKEN_USE_SECONDS, database.record_callers(config, uses))
        except Exception as error:
            log.info("dataplane.token_use_lost", kind=type(error).__name__, error=str(error))
