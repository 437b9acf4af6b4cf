"""Fast list queries: rows as tuples in PostgreSQL's binary format, without model instances.

List views that declare `columns` use this. Parsing the text format of Django's cursors would take
longer than the rest of such a request.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet
from psycopg import Cursor
from psycopg.pq import Format
from rest_framework.request import Request

from controlplane.core.http import pagination

if TYPE_CHECKING:
    from controlplane.core.http.views import ListView

MAX_STATEMENTS = 512
MAX_QUERY_LENGTH = 500

Row = tuple[Any, ...]


class Statement(NamedTuple):
    """SQL and parameters of a page; the SQL is empty if no row can match."""

    sql: str
    params: Row
    page: pagination.Page


_statements: dict[tuple[type, str], Statement] = {}
"""Cached statements by view and query string; building one takes as long as running it."""


def get_statement(view: "ListView[Any]", request: Request) -> Statement:
    """Return the statement of the requested page, from a cache.

    Raises :class:`InvalidInput` for an invalid filter, limit or cursor.
    """
    key = type(view), request.META.get("QUERY_STRING", "")
    statement = _statements.get(key)
    if statement is None:
        statement = _build_statement(view, request)
        if len(key[1]) <= MAX_QUERY_LENGTH:
            if len(_statements) >= MAX_STATEMENTS:
                _statements.clear()
            _statements[key] = statement
    return statement


def fetch(sql: str, params: Row) -> list[Row]:
    """Return the rows of a query in PostgreSQL's binary format; cast JSON columns to text.

    Django's cursor wrapper still handles errors, query logs and counts.
    """
    connection.ensure_connection()
    cursor = Cursor(connection.connection)
    cursor.format = Format.BINARY
    with connection._prepare_cursor(cursor) as wrapped:  # type: ignore[attr-defined]
        wrapped.execute(sql, params)
        rows: list[Row] = wrapped.fetchall()
        return rows


def _build_statement(view: "ListView[Any]", request: Request) -> Statement:
    rows: QuerySet[Any, Any] = view.filter_queryset(view.get_queryset())
    page = pagination.read_page(request, view.ordering, rows.model)
    selected = pagination.select_page(rows, page).values_list(*view.columns)
    try:
        sql, params = view.compile_sql(selected, page)
    except EmptyResultSet:
        return Statement("", (), page)
    return Statement(sql, tuple(params), page)
