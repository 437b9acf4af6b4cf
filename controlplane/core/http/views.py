"""Base classes of API views, and `mutation`, the decorator of all mutating methods."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, ClassVar, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.http import json_format
from controlplane.core.http.fields import EmptyBody, Filters
from controlplane.core.http.pagination import CursorPages, Page, read_page, select_page
from controlplane.core.http.parameters import refuse_unknown
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.requests import is_api
from controlplane.core.idempotency import services as idempotency
from controlplane.core.sql import fetch_binary

MAX_STATEMENTS = 512
MAX_QUERY_LENGTH = 500
Row = TypeVar("Row", bound=Model)
Statement = tuple[str, Sequence[Any], Page]
_statements: dict[tuple[type, str], Statement] = {}
"""Cached statements by view and query string; building one takes as long as running it."""


class ApiView(APIView):
    """Base of API views: `read_scope` is required for GET, `write_scope` for other methods."""

    read_scope: ClassVar[str]
    write_scope: ClassVar[str]
    query_parameters: ClassVar[tuple[str, ...]] = ()
    """Query parameters other than those of `filters`, `path_parameters` and pagination."""
    content_negotiation_class = json_format.OneFormat
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
            # DRF reads a body only if it has a length; the parser enforces the limit.
            request.META.setdefault("CONTENT_LENGTH", "-1")
        if request.query_params and is_api(request._request):
            refuse_unknown(request.query_params, self._list_parameters())

    def _list_parameters(self) -> list[str]:
        names = list(self.query_parameters)
        declared = getattr(self, "path_parameters", ())
        names += [one.name for one in declared if one.location == OpenApiParameter.QUERY]
        if self.request.method in SAFE_METHODS:
            filters = getattr(self, "filters", None)
            names += filters().fields if filters else ()
            names += getattr(getattr(self, "pagination_class", None), "parameters", ())
        return names

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Forbid caching, because responses may contain secrets or personal data."""
        response.headers.setdefault("Cache-Control", "no-store")
        return super().finalize_response(request, response, *args, **kwargs)


class ListView(ApiView, ListAPIView[Row]):
    """An API view of a paginated list, ordered by a unique column and filtered by `filters`."""

    ordering: ClassVar[str]
    filters: ClassVar[type[Filters]] = Filters

    def filter_queryset(self, queryset: Any) -> Any:
        return self.apply_filters(queryset, self.filters.parse(self.request.query_params))

    def apply_filters(self, rows: QuerySet[Row], filters: dict[str, Any]) -> QuerySet[Row]:
        """Return the rows that match the validated filters."""
        return rows


class ColumnListView(ListView[Row], ABC):
    """A list view that reads tuples of `columns` instead of model instances, which is faster.

    The first column is that of `ordering`. The SQL is cached by the query string, except with one
    of `uncached_filters`, which depend on more than that.
    """

    columns: ClassVar[tuple[Any, ...]]
    uncached_filters: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def present(self, rows: Sequence[tuple[Any, ...]]) -> Sequence[Any]:
        """Convert the rows of a page, which are tuples of `columns`, to JSON-ready values."""

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        sql, params, page = self._get_statement(request)
        pages = self.paginator
        assert isinstance(pages, CursorPages)  # noqa: S101 - every list has it
        rows = pages.trim(request, page, fetch_binary(sql, params) if sql else [], itemgetter(0))
        return pages.get_paginated_response(self.present(rows))

    def _get_statement(self, request: Request) -> Statement:
        """Return the SQL of the requested page, its parameters and the page; cached by query.

        The SQL is "" if no row can match. Raises :class:`InvalidInput` for an invalid filter, limit
        or cursor.
        """
        key = type(self), request.META.get("QUERY_STRING", "")
        statement = _statements.get(key)
        if statement is None:
            rows = self.filter_queryset(self.get_queryset())
            page = read_page(request, self.ordering, rows.model)
            selected = select_page(rows, page).values_list(*self.columns)
            try:
                sql, params = self.compile_sql(selected, page)
            except EmptyResultSet:
                sql, params = "", ()
            statement = sql, params, page
            is_cached = self.uncached_filters.isdisjoint(request.query_params)
            if is_cached and len(key[1]) <= MAX_QUERY_LENGTH:
                if len(_statements) >= MAX_STATEMENTS:
                    _statements.clear()
                _statements[key] = statement
        return statement

    def compile_sql(self, rows: QuerySet[Any, Any], page: Page) -> tuple[str, Sequence[Any]]:
        """Return the SQL and parameters that read `rows`, which are limited to the page."""
        return rows.query.sql_with_params()


@dataclass(frozen=True)
class Done:
    """The response of a mutation, returned by a method that :func:`mutation` decorates.

    `stored_data` replaces `data` in a repeated request, `dry_run_data` in a dry run. `actual` is
    called after a dry run's rollback, for fields that show the actual state.
    """

    data: dict[str, Any]
    status: int = 200
    stored_data: dict[str, Any] | None = None
    dry_run_data: dict[str, Any] | None = None
    actual: Callable[[], dict[str, Any]] = dict


Handler = Callable[..., Done]


def mutation(
    body: type[EmptyBody],
    responses: Any = None,
    *,
    first: Callable[..., Any] | None = None,
    **schema: Any,
) -> Callable[[Handler], Callable[..., HttpResponse]]:
    """Decorate a view's method to run in one transaction, once per `Idempotency-Key`.

    The method gets `body` (the validated fields), `actor` and `now`, and returns :class:`Done`. A
    dry run executes the method and rolls back, so its response is exact. `first` is called before
    the method, with the same arguments and outside of its transaction; the method gets the result
    as `prepared`. `first` must be idempotent, because it isn't rolled back, and must do nothing if
    `body["dry_run"]`. `responses` and `schema` are the arguments of :func:`extend_schema`.
    """

    def decorate(handler: Handler) -> Callable[..., HttpResponse]:
        @functools.wraps(handler)
        def handle(view: ApiView, request: Request, **path: str) -> HttpResponse:
            arguments: dict[str, Any] = dict(path)
            if first is not None:
                keyed = _read_key(request)
                earlier = idempotency.find_response(keyed, db_now()) if keyed else None
                if earlier is not None:
                    return _replay_response(earlier)
                fields = body(data=dict(request.data)).read()
                actor, now = actor_of(request), db_now()
                arguments["prepared"] = first(view, body=fields, actor=actor, now=now, **path)

            def work(fields: dict[str, Any], actor: Actor, now: datetime) -> Done:
                return handler(view, body=fields, actor=actor, now=now, **arguments)

            return _run_mutation(request, body, work)

        handle.is_mutation = True  # type: ignore[attr-defined]
        if responses is None:
            return handle
        return extend_schema(request=body, responses=responses, **schema)(handle)

    return decorate


@retry_if_ended
def _run_mutation(
    request: Request,
    body: type[EmptyBody],
    work: Callable[[dict[str, Any], Actor, datetime], Done],
) -> HttpResponse:
    actor, sent, keyed = actor_of(request), dict(request.data), _read_key(request)
    with transaction.atomic():
        now = db_now()
        claimed = None
        if keyed is not None:
            claimed = idempotency.claim_key(keyed, now)
            if claimed.earlier is not None:
                return _replay_response(claimed.earlier)
        fields = body(data=sent).read()
        dry_run = fields.pop("dry_run", False)
        done = work(fields, actor, now)
        if dry_run:
            transaction.set_rollback(True)
        elif claimed is not None:
            stored = done.data if done.stored_data is None else done.stored_data
            text = json_format.dumps(stored).decode()
            idempotency.store_response(claimed, idempotency.StoredResponse(done.status, text))
    if dry_run:
        content = {**(done.dry_run_data or done.data), **done.actual(), "dry_run": True}
        return _build_response(json_format.dumps(content), 200)
    return _build_response(json_format.dumps(done.data), done.status)


def _read_key(request: Request) -> idempotency.RequestKey | None:
    """Return the request's idempotency key with a digest of its body and query, or None."""
    key = request.headers.get(idempotency.HEADER)
    if key is None:
        return None
    body, query = dict(request.data), dict(request.query_params.lists())
    content = {"body": body, "query": query} if query else body
    return idempotency.build_key(actor_of(request), str(request.method), request.path, key, content)


def _replay_response(earlier: idempotency.StoredResponse) -> HttpResponse:
    response = _build_response(earlier.body.encode(), earlier.status)
    response["Idempotent-Replayed"] = "true"
    return response


def _build_response(content: bytes, status: int) -> HttpResponse:
    return HttpResponse(content, status=status, content_type="application/json")
