"""Execution of raw SQL; Django is imported late, because the data plane starts without it."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import Cursor
from psycopg.pq import Format

Parameters = Mapping[str, Any] | Sequence[Any]


def fetch_all(statement: str, parameters: Parameters | None = None) -> list[tuple[Any, ...]]:
    """Return all rows of a query."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def fetch_binary(statement: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all rows of a query in PostgreSQL's binary format, which is parsed faster.

    The query must cast JSON columns to text. Django's cursor wrapper still handles errors, query
    logs and counts.
    """
    from django.db import connection

    connection.ensure_connection()
    cursor = Cursor(connection.connection)
    cursor.format = Format.BINARY
    with connection._prepare_cursor(cursor) as wrapped:  # type: ignore[attr-defined]
        wrapped.execute(statement, parameters)
        return list(wrapped.fetchall())


def execute(statement: str, parameters: Parameters | None = None) -> int:
    """Run a statement that returns no rows; return the number of affected rows."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)
