"""How many instances the database takes: whoever may read can invent names without end."""

import time
from collections.abc import Sequence

import structlog

from controlplane.dataplane import ledger_sql
from controlplane.dataplane.database import Connection
from controlplane.dataplane.ledger_sql import Ack, Said

COUNT_SECONDS = 1.0
log = structlog.get_logger(__name__)


class Room:
    """Room for `most` instances, over all processes and a little beyond."""

    def __init__(self, most: int) -> None:
        self.dropped = 0
        """Notes that were not written, because the table is full."""
        self._most = most
        self._left = 0
        self._counted_at = float("-inf")
        self._told = False

    async def admit(
        self, connection: Connection, said: Sequence[Said], acks: Sequence[Ack]
    ) -> tuple[Sequence[Said], Sequence[Ack]]:
        """What may be written: all of it, or once the table is full what known instances said.

        Rows are counted no more often than each second, and taken for new ones in between.
        """
        now = time.monotonic()
        if self._left < len(said) + len(acks) and now - self._counted_at >= COUNT_SECONDS:
            self._left = self._most - await ledger_sql.count_instances(connection, self._most)
            self._counted_at = now
        if self._left >= len(said) + len(acks):
            self._left -= len(said) + len(acks)
            return said, acks
        ids = {each.id for each in said} | {ack.instance for ack in acks}
        known = await ledger_sql.known_instances(connection, sorted(ids))
        kept = [each for each in said if each.id in known]
        kept_acks = [ack for ack in acks if ack.instance in known]
        self._note(len(said) - len(kept) + len(acks) - len(kept_acks))
        return kept, kept_acks

    def _note(self, dropped: int) -> None:
        self.dropped += dropped
        if dropped and not self._told:
            log.warning("ledger.instances_full", most=self._most, notes=dropped)
        self._told = dropped > 0
