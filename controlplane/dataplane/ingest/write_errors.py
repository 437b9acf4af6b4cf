"""What a database's error means for what was to be written. Pure."""

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


def is_of_all(connection: Connection, error: Exception) -> bool:
    """The database is there and takes nothing at all: a read replica, or not migrated yet."""
    return isinstance(error, _NOT_OURS) and not connection.closed


def is_of_some(connection: Connection, error: Exception) -> bool:
    """The database is there and may well take the rest without the part that it did not take.

    So may it if the error is our own: what one instance says must harm no other.
    """
    broken = connection.closed or isinstance(error, _OF_THE_LINE)
    return not broken and not is_of_all(connection, error)


def is_of_content(connection: Connection, error: Exception) -> bool:
    """As :func:`is_of_some`, and trying again will not help: it is no timeout and no lock."""
    passing = isinstance(error, psycopg.OperationalError)
    return is_of_some(connection, error) and not passing


def described(error: Exception) -> dict[str, Any]:
    """For the log."""
    return {"kind": type(error).__name__, "error": str(error)}
