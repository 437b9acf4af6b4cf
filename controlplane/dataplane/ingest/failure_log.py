"""Log each kind of the ledger's write failures once per outage, refused counts once a minute."""

import time
from collections.abc import Sequence

import structlog

from controlplane.dataplane.postgres.database import Connection

from . import write_errors

SLI_LOGGED_EVERY_SECONDS = 60.0

log = structlog.get_logger(__name__)


class FailureLog:
    """Tracks the write failures of one ledger."""

    def __init__(self) -> None:
        self._second_try = False
        self._refused = False
        self._told_of_loss = False
        self._told_of_drops = False
        self._sli_logged_at = float("-inf")

    def is_refused(self, connection: Connection, error: Exception) -> bool:
        """Return True if the database is reachable but accepts no writes.

        The pending notes are then dropped; later ones may succeed.
        """
        if not write_errors.refuses_all_writes(connection, error):
            return False
        if not self._refused:
            log.warning("ledger.refused", **write_errors.describe_error(error))
        self._refused = True
        return True

    def record_success(self) -> None:
        """Record a successful write."""
        if self._refused or self._told_of_loss or self._told_of_drops:
            log.info("ledger.written_again")
        self._refused = self._told_of_loss = self._told_of_drops = self._second_try = False

    def is_loss(self, error: Exception) -> bool:
        """Return True if the database is lost: at the second failure in a row."""
        if not self._second_try:
            self._second_try = True
            return False
        if not self._told_of_loss:
            log.warning("ledger.database_lost", **write_errors.describe_error(error))
        self._told_of_loss = True
        return True

    def log_drops(self, notes: int) -> None:
        """Log once that so many notes were dropped, because a limit was reached."""
        if notes and not self._told_of_drops:
            log.warning("ledger.notes_dropped", notes=notes)
            self._told_of_drops = True

    def log_refused_sli(self, refused: Sequence[tuple[str, str]]) -> None:
        """Log counts, as (instance, SLO), that a token limited to other services may not report."""
        now = time.monotonic()
        if not refused or now - self._sli_logged_at < SLI_LOGGED_EVERY_SECONDS:
            return
        self._sli_logged_at = now
        instance, slo = refused[0]
        log.warning("ledger.sli_refused", instance=instance, slo=slo, counts=len(refused))
