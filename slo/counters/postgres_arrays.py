"""Query arguments as PostgreSQL array literals, which are faster than lists, or as JSON rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from django.db import connection

BATCH_SIZE = 20_000
"""Most rows in one statement."""


def number_array(values: Iterable[float | None]) -> str:
    """Return numbers or nulls as an array literal, without loss."""
    return "{" + orjson.dumps([*values]).decode()[1:-1] + "}"


def number_arrays(**columns: Iterable[float | None]) -> dict[str, Any]:
    """Return query arguments by name: each column of numbers as an array literal."""
    return {name: number_array(values) for name, values in columns.items()}


def text_array(values: Iterable[str]) -> str:
    """Return texts as an array literal; they must not contain U+0000."""
    quoted = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
    return '{"' + '","'.join(quoted) + '"}' if quoted else "{}"


def execute_rows(
    statement: str, rows: Sequence[Mapping[str, Any]], batch_size: int = BATCH_SIZE
) -> list[tuple[Any, ...]]:
    """Execute a statement for batches of rows, each a JSON array; return the rows it returns."""
    returned: list[tuple[Any, ...]] = []
    with connection.cursor() as cursor:
        for start in range(0, len(rows), batch_size):
            cursor.execute(statement, [orjson.dumps(rows[start : start + batch_size]).decode()])
            if cursor.description:
                returned += cursor.fetchall()
    return returned
