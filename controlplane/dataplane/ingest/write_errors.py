"""Classification of database errors in ledger writes, and logging of each kind once per outage."""

import time
from collections.abc import Sequence
from typing import Any

import psycopg
import structlog

from controlplane.dataplane.postgres.database import Connection

_OF_THE_LINE = (psycopg.InterfaceError, OSError, TimeoutError)
_NOT_OURS = (
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.InsufficientPrivilege,
)
SLI_LOGGED_EVERY_SECONDS = 60.0

log = structlog.get_logger(__name__)


def refuses_all_writes(connection: Connection, error: Exception) -> bool:
    """Return True if the error means that the database accepts no writes at all.

    It is then a read replica, or not migrated.
    """
    return isinstance(error, _NOT_OURS) and not connection.closed


def may_write_rest(connection: Connection, error: Exception) -> bool:
    """Return True if the error may concern only a part of the batch, so the rest can be written."""
    broken = connection.closed or isinstance(error, _OF_THE_LINE)
    return not broken and not refuses_all_writes(connection, error)


def is_data_error(connection: Connection, error: Exception) -> bool:
    """Return True if the data is invalid, so that a retry would fail too.

    Timeouts and lock errors are not data errors.
    """
    passing = isinstance(error, psycopg.OperationalError)
    return may_write_rest(connection, error) and not passing


def describe_error(error: Exception) -> dict[str, Any]:
    return {"kind": type(error).__name__, "error": str(error)}


class FailureLog:
    """The write failures of one ledger, each kind logged once per outage."""

    def __init__(self) -> None:
        self._second_try = False
        self._refused = False
        self._is_loss_logged = False
        self._are_drops_logged = False
        self._sli_logged_at = float("-inf")

    def is_refused(self, connection: Connection, error: Exception) -> bool:
        """Return True, and log it, if a reachable database accepts no writes at all."""
        if not refuses_all_writes(connection, error):
            return False
        if not self._refused:
            log.warning("ledger.refused", **describe_error(error))
        self._refused = True
        return True

    def record_success(self) -> None:
        if self._refused or self._is_loss_logged or self._are_drops_logged:
            log.info("ledger.recovered")
        self._refused = self._is_loss_logged = self._are_drops_logged = self._second_try = False

    def is_loss(self, error: Exception) -> bool:
        """Record a failed database session; return True if the database now counts as lost.

        It does from the second failure in a row on, and this is logged once per outage.
        """
        if not self._second_try:
            self._second_try = True
            return False
        if not self._is_loss_logged:
            log.warning("ledger.database_lost", **describe_error(error))
        self._is_loss_logged = True
        return True

    def log_drops(self, notes: int) -> None:
        if notes and not self._are_drops_logged:
            log.warning("ledger.notes_dropped", notes=notes)
            self._are_drops_logged = True

    def log_refused_sli(self, refused: Sequence[tuple[str, str]]) -> None:
        now = time.monotonic()
        if not refused or now - self._sli_logged_at < SLI_LOGGED_EVERY_SECONDS:
            return
        self._sli_logged_at = now
        instance, slo = refused[0]
        log.warning("ledger.sli_refused", instance=instance, slo=slo, counts=len(refused))
