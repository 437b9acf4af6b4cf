"""Querysets that are compiled to SQL once per process, which saves most of a small query's CPU."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import DateTimeField, QuerySet, Value
from django.db.models.query import ModelIterable, get_related_populators

Statement = tuple[str, tuple[Any, ...]]
Rows = QuerySet[Any, Any]

# Functions that read a value from JSON, by the type of field; other values are read as they are.
_FROM_JSON: Mapping[str, Callable[[Any], Any]] = {
    "DateTimeField": datetime.fromisoformat,
    "DecimalField": lambda value: Decimal(str(value)),
}
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


@dataclass(frozen=True)
class CompiledList:
    """A queryset compiled to an SQL expression: a JSON array of its rows, null without rows.

    :meth:`read` makes model instances of the array, or dicts if the queryset has `values()`.
    """

    sql: str
    parameters: tuple[Any, ...]
    compiler: Any
    is_model: bool

    def read(self, array: str | None) -> list[Any]:
        if array is None:
            return []
        types = [
            _FROM_JSON.get(expression.output_field.get_internal_type())
            for expression, *_ in self.compiler.select
        ]
        rows = [
            [
                convert(value) if convert and value is not None else value
                for convert, value in zip(types, row.values(), strict=True)
            ]
            for row in orjson.loads(array)
        ]
        if self.is_model:
            return [self._build_instance(row) for row in rows]
        query = self.compiler.query
        names = query.selected or [*query.values_select, *query.annotation_select]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _build_instance(self, row: Sequence[Any]) -> Any:
        """Return a model instance, as `ModelIterable` of Django builds it."""
        select, using = self.compiler.select, self.compiler.using
        klass_info = self.compiler.klass_info
        fields = klass_info["select_fields"]
        start, end = fields[0], fields[-1] + 1
        names = [expression.target.attname for expression, *_ in select[start:end]]
        instance = klass_info["model"].from_db(using, names, row[start:end])
        # The stubs are those of a later Django.
        for populator in get_related_populators(klass_info, select, using):  # type: ignore[call-arg]
            populator.populate(row, instance)
        for name, place in self.compiler.annotation_col_map.items():
            setattr(instance, name, row[place])
        return instance


@functools.lru_cache(maxsize=512)
def compile_list(build: Callable[[Any], Rows]) -> CompiledList:
    """Compile the queryset `build(MOMENT)` once per process, to be fetched in a larger statement.

    Its fields must be plain values, times, decimal numbers or JSON.
    """
    rows = build(MOMENT)
    compiler = rows.query.get_compiler(using=rows.db)
    is_model = issubclass(rows._iterable_class, ModelIterable)
    try:
        sql, parameters = compiler.as_sql()
    except EmptyResultSet:
        return CompiledList("NULL", (), compiler, is_model)
    columns = ", ".join(f"c{number}" for number in range(len(compiler.select)))
    sql = f"(SELECT json_agg(row_to_json(q))::text FROM ({sql}) q ({columns}))"  # noqa: S608
    return CompiledList(sql, tuple(parameters), compiler, is_model)
