"""Background task that reports the served version to a database that has lost it."""

import asyncio

import structlog

from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.config import Config
from controlplane.dataplane.postgres import lost_versions_sql
from controlplane.dataplane.state import State

IDLE_SECONDS = 0.5
AGAIN_SECONDS = 2.0
"""Interval between reports of one version, because the next failover may lose the first."""
WRITE_SECONDS = 10.0

log = structlog.get_logger(__name__)


class LostVersionReporter:
    """Reports the served version while the database is behind it and accepts changes.

    The console then begins a new epoch that engages again what the lost version engaged. Until
    then, the data plane serves its copy.
    """

    def __init__(self, config: Config, state: State) -> None:
        self._config = config
        self._state = state
        self._is_failing = False

    async def run(self) -> None:
        while True:
            is_due = self._state.is_ahead and self._state.database_reachable
            pause = await self._report() if is_due else IDLE_SECONDS
            await asyncio.sleep(pause)

    async def _report(self) -> float:
        state, copy = self._state, self._state.published
        if copy is None:
            return IDLE_SECONDS
        policies = state.policies
        is_same = policies is not None and policies.epoch == copy.publication.epoch
        inserting = lost_versions_sql.insert_lost_version(
            self._config,
            copy,
            revision=state.revision,
            registrations=state.registrations,
            policies=policies.version if policies is not None and is_same else -1,
        )
        try:
            is_new = await wait_at_most(WRITE_SECONDS, inserting)
        except Exception as error:  # Any error: the next try may succeed.
            if not self._is_failing:
                details = {"kind": type(error).__name__, "error": str(error)}
                log.error("dataplane.lost_version_not_reported", **details)
            self._is_failing = True
            return IDLE_SECONDS
        self._is_failing = False
        if is_new:
            mark = copy.publication.mark
            log.error("dataplane.version_lost", version=mark, read="docs/restore.md")
        return AGAIN_SECONDS
