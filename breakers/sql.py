"""Execution of raw SQL queries."""

from collections.abc import Mapping
from typing import Any

from django.db import connection


def fetch_all(statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return all rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
