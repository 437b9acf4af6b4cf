"""Transient database errors."""

from django.db import InterfaceError, OperationalError

READ_ONLY = "25006"  # read_only_sql_transaction
TERMINATED = "57P01"  # admin_shutdown: by pg_terminate_backend, or because the server stops
# SQLSTATEs of timeouts and failovers, which Django reports as internal errors.
TRANSIENT_STATES = {"25P03", "25P04", READ_ONLY}


def find_sqlstate(error: BaseException) -> str | None:
    """Return PostgreSQL's SQLSTATE of a Django database error, or None."""
    return getattr(error.__cause__, "sqlstate", None)


def is_away(error: BaseException) -> bool:
    """Return True if the error means that the database is unreachable or read-only."""
    return (
        isinstance(error, OperationalError | InterfaceError)
        or find_sqlstate(error) in TRANSIENT_STATES
    )
