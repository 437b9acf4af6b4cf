"""Cursor pagination, stable while rows are inserted or deleted."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

import orjson
from django.db import models
from drf_spectacular.utils import OpenApiParameter
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.errors import InvalidInput

USUAL_LIMIT = 50
MAX_LIMIT = 200
FORWARD, BACKWARD = "next", "previous"
CURSOR_HELP = "Position in the list, from `next` or `previous`."
LIMIT_HELP = f"Maximum number of rows in a page; at most {MAX_LIMIT}."
PAGE_PARAMETERS = [
    OpenApiParameter("cursor", str, description=CURSOR_HELP),
    OpenApiParameter(
        "limit", {"type": "integer", "minimum": 1}, description=LIMIT_HELP, default=USUAL_LIMIT
    ),
]
"""OpenAPI parameters of views that use :func:`paginate_list`."""
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page:
    """A requested page of a list: ordering, direction, position of the cursor, and row limit."""

    ordering: str
    direction: str
    position: Any
    limit: int


class CursorPages(BasePagination):
    """Paginator of API lists by a unique column; a page is `{"next", "previous", "results"}`."""

    parameters = ("cursor", "limit")

    def __init__(self) -> None:
        self.links: dict[str, str | None] = {FORWARD: None, BACKWARD: None}

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        page = read_page(request, view.ordering, queryset.model)
        column = queryset.model._meta.get_field(view.ordering.lstrip("-"))
        rows = list(select_page(queryset, page))
        return self.trim(request, page, rows, attrgetter(column.attname))

    def trim(
        self, request: Request, page: Page, rows: list[Any], position_of: Callable[[Any], Any]
    ) -> list[Any]:
        """Remove the extra row of :func:`select_page` and return the page's rows in list order.

        Also sets the links to the pages before and after; an extra row means that one follows.
        """
        more = len(rows) > page.limit
        rows = rows[: page.limit]
        if page.direction == BACKWARD:
            rows.reverse()
        before = page.position is not None if page.direction == FORWARD else more
        after = more if page.direction == FORWARD else True
        if rows and before:
            self.links[BACKWARD] = _build_link(request, BACKWARD, position_of(rows[0]))
        if rows and after:
            self.links[FORWARD] = _build_link(request, FORWARD, position_of(rows[-1]))
        return rows

    def get_paginated_response(self, data: Any) -> Response:
        return Response({**self.links, "results": data})

    def get_paginated_response_schema(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": [FORWARD, BACKWARD, "results"],
            "properties": {FORWARD: link, BACKWARD: link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        limit = {"type": "integer", "minimum": 1, "default": USUAL_LIMIT}
        return [
            {"name": name, "in": "query", "description": description, "schema": schema}
            for name, description, schema in (
                ("cursor", CURSOR_HELP, {"type": "string"}),
                ("limit", LIMIT_HELP, limit),
            )
        ]


def read_page(request: Request, ordering: str, model: type[models.Model]) -> Page:
    """Return the page that a request asks for.

    Raises :class:`InvalidInput` for an invalid limit or cursor.
    """
    limit = _read_limit(request)
    column = model._meta.get_field(ordering.lstrip("-"))
    return Page(ordering, *_read_cursor(request, isinstance(column, models.CharField)), limit)


def select_page(queryset: models.QuerySet[Any], page: Page) -> models.QuerySet[Any]:
    """Return the rows of the page and one extra row, if another page follows."""
    name = page.ordering.lstrip("-")
    descending = page.ordering.startswith("-") != (page.direction == BACKWARD)
    if page.position is not None:
        queryset = queryset.filter(**{f"{name}__{'lt' if descending else 'gt'}": page.position})
    return queryset.order_by(f"-{name}" if descending else name)[: page.limit + 1]


def paginate_list(rows: Sequence[Row], request: Request) -> dict[str, Any]:
    """Return one page of a list in memory, in the format of :class:`CursorPages`.

    The cursor is a row number, because such a list has no unique column.
    """
    limit = _read_limit(request)
    direction, position = _read_cursor(request, is_text=False)
    start = max(0, position or 0) if direction == FORWARD else max(0, (position or 0) - limit)
    before, after = start > 0, start + limit < len(rows)
    return {
        FORWARD: _build_link(request, FORWARD, start + limit) if after else None,
        BACKWARD: _build_link(request, BACKWARD, start) if before else None,
        "results": rows[start : start + limit],
    }


def _read_limit(request: Request) -> int:
    text = request.query_params.get("limit") or str(USUAL_LIMIT)
    if not (text.isascii() and text.isdigit() and text.strip("0")):
        raise InvalidInput({"limit": [f"Must be a whole number from 1 to {MAX_LIMIT}."]})
    return MAX_LIMIT if len(text) > 9 else min(int(text), MAX_LIMIT)


def _read_cursor(request: Request, is_text: bool) -> tuple[str, Any]:
    text = request.query_params.get("cursor")
    if not text:
        return FORWARD, None
    error = InvalidInput({"cursor": ["Not a cursor of this list. Use the `next` link unchanged."]})
    try:
        padded = text + "=" * (-len(text) % 4)
        direction, position = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, TypeError) as cause:
        raise error from cause
    fits = isinstance(position, str) if is_text else type(position) is int
    if direction not in (FORWARD, BACKWARD) or not fits or "\x00" in str(position):
        raise error
    return direction, position


def _build_link(request: Request, direction: str, position: Any) -> str:
    cursor = base64.urlsafe_b64encode(orjson.dumps([direction, position])).rstrip(b"=").decode()
    query = request.query_params.copy()
    query["cursor"] = cursor
    return f"{request.build_absolute_uri(request.path)}?{query.urlencode()}"
