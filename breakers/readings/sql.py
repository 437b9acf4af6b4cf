"""Asking PostgreSQL for figures."""

from typing import Any

from django.db import connection


def fetch_all(statement: str, **given: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return list(cursor.fetchall())
