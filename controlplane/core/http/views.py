"""Base classes of the API's views, and `mutation`, the only way to change something over HTTP."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, ClassVar, TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.generics import ListAPIView
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.ended_sessions import retry_if_ended
from controlplane.core.http import columns, rendering
from controlplane.core.http.fields import Filters, MutationBody
from controlplane.core.http.pagination import CursorPages, Page
from controlplane.core.http.parameters import refuse_unknown
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.requests import is_api
from controlplane.core.idempotency import services as idempotency

Row = TypeVar("Row", bound=Model)


class ApiView(APIView):
    """Base of API views, with scopes: `read_scope` for GET, `write_scope` for other methods."""

    read_scope: ClassVar[str]
    write_scope: ClassVar[str]
    query_parameters: ClassVar[tuple[str, ...]] = ()
    """Query parameters beyond those of `filters`, `path_parameters` and pagination."""
    content_negotiation_class = rendering.OneFormat
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
            # DRF looks for a body only if a length is announced; the parser stops at its limit.
            request.META.setdefault("CONTENT_LENGTH", "-1")
        if request.query_params and is_api(request._request):
            refuse_unknown(request.query_params, self._known_parameters())

    def _known_parameters(self) -> list[str]:
        known = list(self.query_parameters)
        declared = getattr(self, "path_parameters", ())
        known += [one.name for one in declared if one.location == OpenApiParameter.QUERY]
        if self.request.method in SAFE_METHODS:
            filters = getattr(self, "filters", None)
            known += filters().fields if filters else ()
            known += getattr(getattr(self, "pagination_class", None), "parameters", ())
        return known

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Forbid caching: responses may contain secrets or data of one person."""
        response.headers.setdefault("Cache-Control", "no-store")
        return super().finalize_response(request, response, *args, **kwargs)


class ListView(ApiView, ListAPIView[Row]):
    """A paged list; `ordering` is one unique column, `filters` are its query parameters.

    A view with `columns` (that of `ordering` first) reads tuples in one statement and converts
    them in :meth:`present`; its filters must depend on the query string only.
    """

    ordering: ClassVar[str]
    filters: ClassVar[type[Filters]] = Filters
    columns: ClassVar[tuple[Any, ...]] = ()

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        if not self.columns:
            return super().list(request, *args, **kwargs)
        sql, params, page = columns.statement(self, request)
        pages = self.paginator
        assert isinstance(pages, CursorPages)  # noqa: S101 - every list has it
        rows = pages.cut(request, page, columns.fetch(sql, params) if sql else [], itemgetter(0))
        return pages.get_paginated_response(self.present(rows))

    def compile_sql(self, rows: QuerySet[Any, Any], page: Page) -> tuple[str, Sequence[Any]]:
        """Return the SQL and parameters that read `rows`, already limited to the page."""
        return rows.query.sql_with_params()

    def present(self, rows: Sequence[tuple[Any, ...]]) -> Sequence[Any]:
        """Convert the rows of a page, tuples of `columns`, to values that orjson can write."""
        raise NotImplementedError

    def filter_queryset(self, queryset: Any) -> Any:
        return self.apply_filters(queryset, self.filters.parse(self.request.query_params))

    def apply_filters(self, rows: QuerySet[Row], filters: dict[str, Any]) -> QuerySet[Row]:
        """Return the rows that pass the validated filters."""
        return rows


@dataclass(frozen=True)
class Done:
    """The response of a mutation, with variants for a repeat and a dry run.

    `still` is called by a dry run after the rollback, for fields that show the actual state instead
    of the simulated one.
    """

    data: dict[str, Any]
    status: int = 200
    kept: dict[str, Any] | None = None
    would_be: dict[str, Any] | None = None
    still: Callable[[], dict[str, Any]] = dict


Handler = Callable[..., Done]


def mutation(
    body: type[MutationBody], *, first: Callable[..., Any] | None = None
) -> Callable[[Handler], Callable[..., HttpResponse]]:
    """Run a view's method in one transaction, under its `Idempotency-Key` if there is one.

    The method gets `body` (the validated fields), `actor` and `now`, and returns :class:`Done`. A
    dry run does everything and rolls it back, so that its response is exact.

    `first` does work outside that transaction: it is called beforehand with the same arguments, in
    transactions of its own, and its result is passed to the method as `prepared`. It must be safe
    to repeat, because it isn't undone if the rest fails; in a dry run (`body["dry_run"]`) it must
    not do anything.
    """

    def decorate(handler: Handler) -> Callable[..., HttpResponse]:
        @functools.wraps(handler)
        def handle(view: ApiView, request: Request, **path: str) -> HttpResponse:
            given: dict[str, Any] = dict(path)
            if first is not None:
                earlier = _earlier(request)
                if earlier is not None:
                    return _again(earlier)
                fields = body(data=dict(request.data)).read()
                actor, now = actor_of(request), db_now()
                given["prepared"] = first(view, body=fields, actor=actor, now=now, **path)

            def work(fields: dict[str, Any], actor: Actor, now: datetime) -> Done:
                return handler(view, body=fields, actor=actor, now=now, **given)

            return _once(request, body, work)

        handle.is_mutation = True  # type: ignore[attr-defined]
        return handle

    return decorate


@retry_if_ended
def _once(
    request: Request,
    body: type[MutationBody],
    work: Callable[[dict[str, Any], Actor, datetime], Done],
) -> HttpResponse:
    actor, sent = actor_of(request), dict(request.data)
    key = request.headers.get(idempotency.HEADER)
    with transaction.atomic():
        now = db_now()
        claimed = None
        if key is not None:
            claimed = idempotency.claim(
                actor=actor,
                method=str(request.method),
                path=request.path,
                key=key,
                request=_asked(request),
                now=now,
            )
            if claimed.earlier is not None:
                return _again(claimed.earlier)
        fields = body(data=sent).read()
        dry_run = fields.pop("dry_run", False)
        done = work(fields, actor, now)
        if dry_run:
            transaction.set_rollback(True)
        elif claimed is not None:
            kept = rendering.dumps(done.data if done.kept is None else done.kept).decode()
            idempotency.keep(claimed, idempotency.Answer(done.status, kept))
    if dry_run:
        answer = {**(done.would_be or done.data), **done.still(), "dry_run": True}
        return _json(rendering.dumps(answer), 200)
    return _json(rendering.dumps(done.data), done.status)


def _earlier(request: Request) -> idempotency.Answer | None:
    """Return the stored response to this request, without waiting for a concurrent duplicate."""
    key = request.headers.get(idempotency.HEADER)
    if key is None:
        return None
    return idempotency.answered(
        actor=actor_of(request),
        method=str(request.method),
        path=request.path,
        key=key,
        request=_asked(request),
        now=db_now(),
    )


def _asked(request: Request) -> dict[str, Any]:
    """Return the parts that must be equal in a repeat: the body, and the query if there is one."""
    body = dict(request.data)
    query = dict(request.query_params.lists())
    return {"body": body, "query": query} if query else body


def _again(earlier: idempotency.Answer) -> HttpResponse:
    response = _json(earlier.body.encode(), earlier.status)
    response["Idempotent-Replayed"] = "true"
    return response


def _json(content: bytes, status: int) -> HttpResponse:
    return HttpResponse(content, status=status, content_type="application/json")
