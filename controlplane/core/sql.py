"""Execution of raw SQL."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection

Parameters = Mapping[str, Any] | Sequence[Any]


def fetch_all(statement: str, parameters: Parameters | None = None) -> list[tuple[Any, ...]]:
    """Return all rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def execute(statement: str, parameters: Parameters | None = None) -> int:
    """Run a statement that returns no rows; return the number of affected rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return int(cursor.rowcount)
