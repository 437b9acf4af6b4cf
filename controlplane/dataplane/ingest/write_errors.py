"""Classification of database errors by which writes they affect. Pure."""

from typing import Any

import psycopg

from controlplane.dataplane.postgres.database import Connection

_OF_THE_LINE = (psycopg.InterfaceError, OSError, TimeoutError)
_NOT_OURS = (
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.InsufficientPrivilege,
)


def refuses_all_writes(connection: Connection, error: Exception) -> bool:
    """Return True if the database accepts no writes: a read replica, or not migrated yet."""
    return isinstance(error, _NOT_OURS) and not connection.closed


def may_write_rest(connection: Connection, error: Exception) -> bool:
    """Return True if only a part of the batch may be at fault, and the rest can be written.

    That includes errors of our own code: one instance's report must not affect others.
    """
    broken = connection.closed or isinstance(error, _OF_THE_LINE)
    return not broken and not refuses_all_writes(connection, error)


def is_data_error(connection: Connection, error: Exception) -> bool:
    """Return True if the data itself is at fault, so that retrying won't help.

    Timeouts and lock failures are excluded.
    """
    passing = isinstance(error, psycopg.OperationalError)
    return may_write_rest(connection, error) and not passing


def describe_error(error: Exception) -> dict[str, Any]:
    """Return the error's fields for the log."""
    return {"kind": type(error).__name__, "error": str(error)}
