"""Refresher of switches and tokens: polls one database row each second, and when woken.

Other data is read only when that row has changed, in one transaction. Every wait has a deadline:
while the database is stopped or frozen, the data merely gets older. Policies and degradation causes
are followed separately, so that they can't delay a switch.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from time import perf_counter

import structlog

from controlplane.core.protocol import WAKE_CHANNEL
from controlplane.core.redis_subscriber import RedisSubscriber, SubscriberTiming
from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.config import Config
from controlplane.dataplane.memory.ownership import NO_OWNERS
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.postgres import database
from controlplane.dataplane.state import State

from .config_follower import ConfigFollower
from .snapshot_keeper import SnapshotKeeper

MAX_IDLE_SECONDS = 0.1
SKEW_SECONDS = 2.0
SUBSCRIBER_PACE = SubscriberTiming(
    connect_seconds=2.0, silence_seconds=5.0, longest_pause_seconds=5.0
)

log = structlog.get_logger(__name__)


class Refresher:
    """Background task that polls the database and installs snapshots and tokens in the state."""

    def __init__(
        self, config: Config, state: State, follower: ConfigFollower, keeper: SnapshotKeeper
    ) -> None:
        self.tried = asyncio.Event()
        """Set once the first poll has succeeded or failed."""
        self._config = config
        self._state = state
        self._follower = follower
        self._keeper = keeper
        self._woken = asyncio.Event()
        self._rebuild_seconds = 0.0
        self._lagging = False
        self._second_try = False
        self._skewed = False

    def wake(self) -> None:
        """Trigger a poll now; several calls before it cause one poll."""
        self._woken.set()

    async def run(self) -> None:
        while True:
            try:
                await self._session()
            except Exception as error:
                # The database is lost only if the next connection fails too.
                # A timeout has waited long enough already.
                frozen = isinstance(error, TimeoutError)
                if self._state.database_reachable and not self._second_try and not frozen:
                    self._second_try = True
                    continue
                if self._state.database_reachable or not self.tried.is_set():
                    details = {"kind": type(error).__name__, "error": str(error)}
                    log.warning("dataplane.database_lost", **details)
                self._state.database_reachable = False
                self.tried.set()
            await asyncio.sleep(random.uniform(0.2, 0.8))  # noqa: S311

    async def _session(self) -> None:
        deadline = self._config.deadline_seconds
        connection = await wait_at_most(deadline, database.connect(self._config))
        self._follower.distrust()
        refresh: asyncio.Task[None] | None = None
        try:
            while True:
                self._woken.clear()
                refresh = asyncio.create_task(self._refresh(connection))
                await wait_at_most(deadline, refresh)
                # Pause as long as the last rebuild took, so that a burst of changes is applied in
                # few steps and requests keep at least half of the event loop.
                await asyncio.sleep(self._rebuild_seconds)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._config.poll_seconds - self._rebuild_seconds):
                        await self._woken.wait()
        finally:
            # A refresh that timed out may still use the socket: close it afterwards, because its
            # descriptor could be reused meanwhile.
            if refresh is not None:
                refresh.add_done_callback(lambda _: connection.pgconn.finish())

    async def _refresh(self, connection: database.Connection) -> None:
        state = self._state
        # Age counts from the request, the earliest time at which the answer was true.
        asked_at = state.now()
        head = await database.parse_head(await connection.execute(database.HEAD))
        state.database_read_only = head.is_read_only
        ahead_seconds = state.set_clock(head.now, asked_at)
        skewed = abs(ahead_seconds) > SKEW_SECONDS
        if skewed and not self._skewed:
            log.warning("dataplane.clock_skewed", ahead_seconds=round(ahead_seconds, 1))
        self._skewed = skewed
        self._rebuild_seconds, has_lost = 0.0, False
        if not state.is_lagging(head) and state.lacks(head):
            lacks_copy = state.lacks_copy(head)
            state.must_reread = False
            contents = await database.read_contents(
                connection,
                entries=lacks_copy,
                tokens=state.lacks_tokens(head),
                # There may be many ids; the copy must not wait for them.
                known=(state.copy is None or not lacks_copy)
                and state.registrations != head.registrations,
                orders=state.orders.uncertain_ids(state.wall()),
                served=None if state.published is None else state.published.publication,
            )
            has_lost, head = contents.has_lost, contents.head
            if not has_lost:
                await self._apply(contents, asked_at)
        # After a complete read, so that repeated failures always pause; before the age is reset, so
        # that readers see both changes.
        self._second_try = False
        if not state.database_reachable:
            log.info("dataplane.database_found")
        state.database_reachable = True
        is_refused = has_lost or state.is_lagging(head)
        # A replica that lags, or a server that is read-only, has lost nothing.
        state.is_ahead = not head.is_read_only and (is_refused or state.is_before_policies(head))
        if is_refused:
            if not self._lagging:
                epoch, version = str(head.publication.epoch), head.publication.version
                log.warning("dataplane.older_version_ignored", epoch=epoch, version=version)
            self._lagging = True
        else:
            if state.lacks(head):
                self.wake()  # Parts not read yet, or changed during the read.
            else:
                self._lagging = False
                state.confirm(asked_at)
            self._follower.compare(head, asked_at)
        self.tried.set()

    async def _apply(self, contents: database.Contents, asked_at: float) -> None:
        state, head, began = self._state, contents.head, perf_counter()
        if state.is_lagging(head):
            return
        if contents.entries is not None:
            copy = Copy.render(
                head.publication,
                contents.entries,
                state.published,
                drill_snapshot=contents.drill_snapshot,
                orders=state.list_closed(contents.closed or {}),
            )
            took = perf_counter() - began
            if state.copy is not None and state.copy.epoch != copy.epoch:
                left, begun = state.copy.publication.epoch, head.publication.epoch
                log.warning("dataplane.epoch_changed", left=str(left), begun=str(begun))
            await self._keeper.save_before_serving(copy)
            state.measure_propagation(copy)
            state.install_copy(copy, confirmed_at=asked_at, closed=contents.closed)
            log.debug(
                "dataplane.published",
                took_ms=round(took * 1000, 1),
                version=head.publication.version,
                switches=len(copy.entries),
                size_bytes=len(copy.body),
            )
        if contents.tokens is not None:
            state.install_tokens(
                head.revision, contents.tokens, contents.codes or {}, contents.owners or NO_OWNERS
            )
        if contents.known is not None:
            state.install_known(head.registrations, contents.known)
        self._rebuild_seconds = min(perf_counter() - began, MAX_IDLE_SECONDS)


def make_subscriber(
    redis_url: str,
    on_wake: Callable[[], None],
    on_state: Callable[[bool], None] = lambda _reachable: None,
    pace: SubscriberTiming = SUBSCRIBER_PACE,
) -> RedisSubscriber:
    """Return a Redis subscriber that calls `on_wake` for each message and each new connection.

    The call for a connection covers the messages missed before it. `on_state` is called with True
    or False whenever Redis may have become reachable or unreachable.
    """

    def begin() -> None:
        on_state(True)
        on_wake()

    return RedisSubscriber(
        redis_url,
        WAKE_CHANNEL,
        pace,
        on_message=lambda _message: on_wake(),
        on_begin=begin,
        on_lost=lambda: on_state(False),
    )
