"""What stands in the ledger's way, and that each kind of it is told once until it is over."""

import structlog

from controlplane.dataplane import refusals
from controlplane.dataplane.database import Connection

log = structlog.get_logger(__name__)


class Trouble:
    """The troubles of one ledger."""

    def __init__(self) -> None:
        self._second_try = False
        self._refused = False
        self._told_of_loss = False
        self._told_of_drops = False

    def is_refused(self, connection: Connection, error: Exception) -> bool:
        """Whether the database is there and takes nothing: then what was to be written is dropped,
        and later notes may fare better."""
        if not refusals.is_of_all(connection, error):
            return False
        if not self._refused:
            log.warning("ledger.refused", **refusals.described(error))
        self._refused = True
        return True

    def over(self) -> None:
        """Something was written."""
        if self._refused or self._told_of_loss or self._told_of_drops:
            log.info("ledger.written_again")
        self._refused = self._told_of_loss = self._told_of_drops = self._second_try = False

    def is_loss(self, error: Exception) -> bool:
        """Whether the database is lost. One broken connection is not: only if the next fails
        too."""
        if not self._second_try:
            self._second_try = True
            return False
        if not self._told_of_loss:
            log.warning("ledger.database_lost", **refusals.described(error))
        self._told_of_loss = True
        return True

    def dropped(self, notes: int) -> None:
        """So many notes were never written, for want of room."""
        if notes and not self._told_of_drops:
            log.warning("ledger.notes_dropped", notes=notes)
            self._told_of_drops = True
