"""Querysets that are compiled to SQL once per process, which saves most of a small query's CPU."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, QuerySet, Value

Statement = tuple[str, tuple[Any, ...]]
Rows = QuerySet[Any, Any]

_PLACEHOLDER = datetime(1, 1, 1, tzinfo=UTC)
MOMENT: Any = Value(_PLACEHOLDER, output_field=DateTimeField())
"""Placeholder for the current time in a compiled queryset; supports date arithmetic."""


def fetch_rows(build: Callable[[], Rows]) -> list[tuple[Any, ...]]:
    """Run the queryset that `build` returns, and return its rows as tuples.

    `build` returns a `values_list()`, which is compiled to SQL once per process.
    """
    with connection.cursor() as cursor:
        cursor.execute(*_compile(build))
        return list(cursor.fetchall())


def fetch_first(now: datetime, *builds: Callable[[Any], Rows]) -> dict[str, Any]:
    """Fetch the first row of several querysets by one query; return one dict by column name.

    The values of a queryset without rows are None. Each of `builds` is called once per process to
    make a queryset; its argument is :data:`MOMENT`, a placeholder that stands for `now`.
    """
    compiled = [compile_at(build) for build in builds]
    joins = " ".join(
        f"LEFT JOIN ({sql} LIMIT 1) q{number} ON true" for number, (sql, _) in enumerate(compiled)
    )
    columns = ", ".join(f"q{number}.*" for number in range(len(compiled)))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns} FROM (SELECT) one {joins}",  # noqa: S608
            substitute_now([value for _, values in compiled for value in values], now),
        )
        names = [column.name for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))


def compile_at(build: Callable[[Any], Rows]) -> Statement:
    """Compile the queryset `build(MOMENT)` once per process; return its SQL and parameters.

    Raises `EmptyResultSet` if no row can match.
    """
    return _compile(build, MOMENT)


def substitute_now(parameters: list[Any], now: datetime) -> list[Any]:
    """Return the SQL parameters with the time `now` in place of the placeholder :data:`MOMENT`."""
    return [now if value == _PLACEHOLDER else value for value in parameters]


@functools.lru_cache(maxsize=512)
def _compile(build: Callable[..., Rows], *arguments: Any) -> Statement:
    statement, parameters = build(*arguments).query.sql_with_params()
    return statement, tuple(parameters)
