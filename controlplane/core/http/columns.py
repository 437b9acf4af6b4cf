"""Read lists as plain tuples: one statement, no model instances, PostgreSQL's binary format.

Used by list views that declare `columns`. Django's cursors take results as text: parsing a hundred
rows with four timestamps each costs more than the rest of the request.
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
    """The SQL of one page and its parameters; the SQL is empty if no row can match."""

    sql: str
    params: Row
    page: pagination.Page


_statements: dict[tuple[type, str], Statement] = {}
"""Statements by view and query string. Building one takes as long as running it."""


def statement(view: "ListView[Any]", request: Request) -> Statement:
    """Return the statement for the requested page.

    Raises :class:`InvalidInput` for a bad filter, limit or cursor.
    """
    key = type(view), request.META.get("QUERY_STRING", "")
    found = _statements.get(key)
    if found is None:
        found = _build_statement(view, request)
        if len(key[1]) <= MAX_QUERY_LENGTH:
            if len(_statements) >= MAX_STATEMENTS:
                _statements.clear()
            _statements[key] = found
    return found


def fetch(sql: str, params: Row) -> list[Row]:
    """Return the rows of a query, read in PostgreSQL's binary format. Cast JSON columns to text.

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
    page = pagination.page(request, view.ordering, rows.model)
    chosen = pagination.select_page(rows, page).values_list(*view.columns)
    try:
        sql, params = view.compile_sql(chosen, page)
    except EmptyResultSet:
        return Statement("", (), page)
    return Statement(sql, tuple(params), page)
