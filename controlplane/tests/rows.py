"""Thousands of rows in tests, without an object for each: copied within the database or into it."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection
from django.db.models import Model


def multiply(row: Model, count: int, **columns: str) -> None:
    """Insert `count` copies of `row`; each of `columns` is an SQL expression of `i`, 1 to `count`.

    A primary key that is not among them is generated.
    """
    meta = row._meta
    fields = [
        field for field in meta.concrete_fields if not field.primary_key or field.name in columns
    ]
    values = [columns.get(field.name, f'original."{field.column}"') for field in fields]
    names = ", ".join(f'"{field.column}"' for field in fields)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {meta.db_table} ({names})"
            f" SELECT {', '.join(values).replace('%', '%%')}"
            f" FROM {meta.db_table} original, generate_series(1, {count:d}) i"
            f' WHERE original."{meta.pk.column}" = %s',
            [row.pk],
        )


def insert(model: type[Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows of the values of these columns."""
    names = ", ".join(f'"{column}"' for column in columns)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {model._meta.db_table} ({names}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(row)
