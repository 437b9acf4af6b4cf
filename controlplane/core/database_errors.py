"""Transient database errors, as opposed to programming errors."""

from django.db import InterfaceError, OperationalError

READ_ONLY = "25006"  # read_only_sql_transaction
# Internal errors that a failover or a timeout brings about.
PASSING_STATES = {"25P03", "25P04", READ_ONLY}


def sqlstate(error: BaseException) -> str | None:
    """Return the SQLSTATE that PostgreSQL gave to an error of Django's; None if it gave none."""
    return getattr(error.__cause__, "sqlstate", None)


def is_away(error: BaseException) -> bool:
    """Return True if the database does not answer in time, or is read-only, such as a standby."""
    return isinstance(error, OperationalError | InterfaceError) or sqlstate(error) in PASSING_STATES
