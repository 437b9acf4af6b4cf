"""Follower of policies, overrides and degradation causes, on its own database connection.

The refresher follows switches and tokens separately, so that many or invalid policies can't delay
them, and can't make the database count as unreachable.
"""

import asyncio
from time import perf_counter

import structlog

from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.config import Config
from controlplane.dataplane.memory.policies import DependencyPolicy, Policies
from controlplane.dataplane.postgres import database, policies_sql
from controlplane.dataplane.postgres.database import DatabaseHead
from controlplane.dataplane.postgres.policies_sql import Changes
from controlplane.dataplane.state import State

DEADLINE_SECONDS = 12.0
MAX_IDLE_SECONDS = 30.0

log = structlog.get_logger(__name__)


class ConfigFollower:
    """Background task that reads and installs policies and causes whenever they have changed."""

    def __init__(self, config: Config, state: State) -> None:
        self.tried = asyncio.Event()
        """Set once the first read has succeeded or failed."""
        self._config = config
        self._state = state
        self._has_changes = asyncio.Event()
        self._head: DatabaseHead | None = None
        # True if a backup may have been restored without a new epoch, so that policies held here
        # may never have existed in the database. Everything is read again then.
        self._doubted = True
        self._lagging = False
        self._failures = 0

    def distrust(self) -> None:
        """Make the next read load all policies instead of changes.

        Called for a new connection, which may lead to another database.
        """
        self._doubted = True

    def compare(self, head: DatabaseHead, asked_at: float) -> None:
        """Trigger a read if policies or causes differ from `head`, read at `asked_at` (monotonic).

        `head` must not be outdated.
        """
        state, known = self._state, self._state.policies
        self._head = head
        lagging = state.is_before_policies(head)
        if lagging and not self._lagging:
            log.warning("dataplane.older_policies_ignored", version=head.policies)
        self._lagging = lagging
        if state.has_policies(head):
            self._doubted = False
            state.confirm_policies(asked_at)
        elif lagging or (known is not None and known.version == head.policies):
            self._doubted = True
        if self._is_wanted(head):
            self._has_changes.set()
        else:
            self.tried.set()

    async def run(self) -> None:
        while True:
            await self._has_changes.wait()
            self._has_changes.clear()
            began = perf_counter()
            try:
                await wait_at_most(DEADLINE_SECONDS, self._read_changes())
            except Exception as error:
                if not self._failures:
                    details = {"kind": type(error).__name__, "error": str(error)}
                    log.warning("dataplane.policies_unreadable", **details)
                self._failures += 1
                rest = min(2.0**self._failures / 2, MAX_IDLE_SECONDS)
            else:
                # A burst of changes is taken in a few large steps.
                rest = min(perf_counter() - began, 1.0)
                self._failures = 0
            self.tried.set()
            await asyncio.sleep(rest)

    def _is_wanted(self, head: DatabaseHead) -> bool:
        state = self._state
        has_all = state.has_policies(head) or state.is_before_policies(head)
        return state.degradation != head.degradation or not has_all

    async def _read_changes(self) -> None:
        state, head = self._state, self._head
        if head is None or not self._is_wanted(head):
            return  # Already part of the previous read.
        since = -1 if self._doubted else state.policies_since(head)
        connection = await database.connect(self._config, policies_sql.SESSION_OPTIONS)
        try:
            asked_at = state.now()
            self._apply(await policies_sql.read_changes(connection, since), since, asked_at)
        finally:
            connection.pgconn.finish()

    def _apply(self, changes: Changes, since: int, asked_at: float) -> None:
        """Install `changes`; skip them if they are outdated or don't follow the loaded version."""
        state, head = self._state, changes.head
        if state.is_lagging(head):
            return
        if state.degradation != head.degradation:
            # Unreadable causes are not read again until the next revision.
            causes = state.causes if changes.causes is None else changes.causes
            state.install_causes(head.degradation, causes)
        if state.is_before_policies(head) or since not in {-1, state.policies_since(head)}:
            return
        if not state.has_policies(head):
            if since == head.policies:
                return  # A restored backup reused the version; a later read gets all policies.
            state.install_policies(self._merge_policies(changes, since))
        if since < 0:
            self._doubted = False
        state.confirm_policies(asked_at)

    def _merge_policies(self, changes: Changes, since: int) -> Policies:
        head, known = changes.head, self._state.policies
        if known is not None and since >= 0:
            return known.with_changes(head.policies, changes.policies, head.policies_at)
        kept: list[DependencyPolicy] = []
        if known is not None:  # Unreadable policies stay as last served.
            served = known.by_caller
            kept = [one for a, b in changes.broken if (one := served.get(a, {}).get(b))]
        epoch = head.publication.epoch
        return Policies.build(epoch, head.policies, [*changes.policies, *kept], head.policies_at)
