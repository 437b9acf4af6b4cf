"""The latest statuses of relays that a process received. Memory only."""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

from .processes import ProcessStatus
from .relay_message import RelayMessage

MAX_STATUSES = 10_000
RECENT = timedelta(seconds=30)
"""Time after which the status of a relay that sent no other counts no more."""


class RelayStatuses:
    """The latest status of each relay process, as received from it or from a relay before it."""

    def __init__(self, wall: Callable[[], datetime]) -> None:
        self._wall = wall
        self._statuses: dict[UUID, tuple[datetime, ProcessStatus]] = {}

    def record(self, message: RelayMessage) -> None:
        """Remember the statuses in a message."""
        now = self._wall()
        for status in (message.status, *message.relays):
            known = self._statuses.pop(status.process, None)
            if known is not None and known[1].heard_at >= status.heard_at:
                self._statuses[status.process] = known
            else:
                self._statuses[status.process] = (now, status)
        while len(self._statuses) > MAX_STATUSES:
            del self._statuses[next(iter(self._statuses))]

    def list_recent(self) -> list[ProcessStatus]:
        """Return the statuses received in the last 30 seconds."""
        since = self._wall() - RECENT
        return [status for received_at, status in self._statuses.values() if received_at >= since]
