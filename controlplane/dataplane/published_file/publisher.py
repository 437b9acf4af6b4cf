"""A task that keeps the published file up to date, and reports if it can't."""

import asyncio
import random
from datetime import datetime, timedelta

import structlog

from controlplane.core.degradation_levels import DEGRADED, Cause
from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.state import State

from .content import Decision, FileHead, decide, describe_copy, render_file
from .locations import UPDATE_SECONDS, FileLocation, PublishFailed

CHECK_SECONDS = 0.5
"""Interval of the checks for a new version."""
INTERVAL_SECONDS = 25.0
"""Longest time between two writes, with a margin to 30 s."""
JITTER = 0.08
"""Random part by which an interval is longer, so that processes don't write at one moment."""
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 1.0, 20.0
FAILING_SECONDS = 60.0
"""Time after which a failure is reported as a cause of degradation."""

log = structlog.get_logger(__name__)


class Publisher:
    """Writes the snapshot to `location` on each version, and at least every 30 seconds."""

    def __init__(
        self,
        state: State,
        location: FileLocation,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        retry_seconds: float = FIRST_RETRY_SECONDS,
    ) -> None:
        self._state = state
        self._location = location
        self._interval_seconds = interval_seconds
        self._retry_seconds = retry_seconds
        self._written: tuple[str, str] | None = None
        """Mark and signature of the snapshot that was last written, or found in the file."""
        self._due_at = 0.0
        self._retry_at = 0.0
        self._failures = 0
        self._failing_since: float | None = None
        self._update: asyncio.Task[None] | None = None
        """The latest update, which may hang in a file system; no other begins before its end."""

    async def run(self) -> None:
        """Publish until canceled."""
        try:
            while True:
                await self._publish_if_due()
                await asyncio.sleep(CHECK_SECONDS)
        finally:
            if self._update is not None:
                self._update.cancel()
            await self._location.close()

    async def _publish_if_due(self) -> None:
        state, now = self._state, self._state.now()
        copy = state.published
        if copy is None or now < self._retry_at:
            return
        if self._written == (copy.publication.mark, copy.signature) and now < self._due_at:
            return
        try:
            await self._publish(copy)
        except PublishFailed as error:
            self._record_failure(str(error))
        else:
            self._record_success()

    async def _publish(self, copy: Copy) -> None:
        """Write `copy` if the file is not newer and not as new; raise :class:`PublishFailed`."""
        if not copy.signature:
            raise PublishFailed("the snapshot is not signed yet")
        state = self._state
        confirmed_at = state.wall() - timedelta(seconds=state.age_seconds())
        ours = describe_copy(copy, confirmed_at)
        present_at: datetime | None = None
        decision = Decision.WRITE

        def render(present: FileHead | None) -> bytes | None:
            nonlocal decision, present_at
            decision = decide(ours, present, state.left_epochs)
            present_at = None if present is None else present.confirmed_at
            return render_file(ours, copy.signed_body) if decision is Decision.WRITE else None

        await self._finish_update()
        self._update = asyncio.create_task(self._location.update(render))
        await self._finish_update()
        if decision is Decision.REFUSE:
            raise PublishFailed("the file is newer than the snapshot of this data plane")
        state.file_updates[decision.value] += 1
        waited = 0.0
        if decision is Decision.KEEP and present_at is not None:
            waited = max(0.0, (confirmed_at - present_at).total_seconds())
        self._written = copy.publication.mark, copy.signature
        interval = self._interval_seconds * (1 + JITTER * random.random())  # noqa: S311
        self._due_at = state.now() + interval - waited

    async def _finish_update(self) -> None:
        """Wait for the end of the running update, if there is one; raise :class:`PublishFailed`."""
        if self._update is None:
            return
        done, _ = await asyncio.wait({self._update}, timeout=UPDATE_SECONDS + 1)
        if not done:
            raise PublishFailed("no response in time")
        update, self._update = self._update, None
        await update

    def _record_success(self) -> None:
        if self._failures:
            log.info("snapshot_file.publishing_recovered", location=self._location.name)
        self._failures, self._failing_since = 0, None
        self._state.publishing = None
        self._state.has_file = True

    def _record_failure(self, reason: str) -> None:
        state, now = self._state, self._state.now()
        state.file_updates["fail"] += 1
        if self._failing_since is None:
            self._failing_since = now
            log.warning(
                "snapshot_file.publishing_failed", location=self._location.name, reason=reason
            )
        if now - self._failing_since >= FAILING_SECONDS:
            state.publishing = describe_failure(self._location.name, reason)
            state.has_file = False
        pause = min(MAX_RETRY_SECONDS, self._retry_seconds * 2 ** min(self._failures, 10))
        self._failures += 1
        self._retry_at = now + pause * (0.5 + random.random() / 2)  # noqa: S311


def describe_failure(location: str, reason: str) -> Cause:
    return Cause(
        DEGRADED,
        "snapshot file",
        f"The signed snapshot can't be published to {location}: {reason}.",
        fails=("Changes for services that reach only this file",),
        works=("Snapshots and streams of data planes",),
    )
