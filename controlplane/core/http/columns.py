"""Lists read as plain tuples: one statement, no objects, PostgreSQL's binary format.

A list view that names its `columns` is read so. Django's own cursors take results as text, where
a hundred rows with four times each cost more than the rest of the request.
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
    """The statement of one page; without text if no row can match."""

    sql: str
    params: Row
    page: pagination.Page


_statements: dict[tuple[type, str], Statement] = {}
"""By view and query string, which determine it; building one takes as long as running it."""


def statement(view: "ListView[Any]", request: Request) -> Statement:
    """The statement for the page that a request names.

    Raises what is wrong with the request's filters, limit or cursor.
    """
    key = type(view), request.META.get("QUERY_STRING", "")
    found = _statements.get(key)
    if found is None:
        found = _compiled(view, request)
        if len(key[1]) <= MAX_QUERY_LENGTH:
            if len(_statements) >= MAX_STATEMENTS:
                _statements.clear()
            _statements[key] = found
    return found


def fetch(sql: str, params: Row) -> list[Row]:
    """The rows of a query as PostgreSQL sends them in binary: JSON columns are to be cast to text.

    Runs behind Django's own wrapper, so that errors, query logs and counts are as usual.
    """
    connection.ensure_connection()
    cursor = Cursor(connection.connection)
    cursor.format = Format.BINARY
    with connection._prepare_cursor(cursor) as wrapped:  # type: ignore[attr-defined]
        wrapped.execute(sql, params)
        rows: list[Row] = wrapped.fetchall()
        return rows


def _compiled(view: "ListView[Any]", request: Request) -> Statement:
    rows: QuerySet[Any, Any] = view.filter_queryset(view.get_queryset())
    page = pagination.page(request, view.ordering, rows.model)
    chosen = pagination.narrowed(rows, page).values_list(*view.columns)
    try:
        sql, params = view.compiled(chosen, page)
    except EmptyResultSet:
        return Statement("", (), page)
    return Statement(sql, tuple(params), page)
