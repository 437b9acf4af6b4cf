"""The audit trail over HTTP: searched page by page, or exported as a stream."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import orjson
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.audit import search, services
from controlplane.core.audit.export import csv_rows
from controlplane.core.audit.models import ACTOR_TYPES, AuditEntry, by_actor
from controlplane.core.errors import InvalidInput
from controlplane.core.http import file_responses
from controlplane.core.http.fields import Filters, Moment
from controlplane.core.http.pagination import BACKWARD, Page
from controlplane.core.http.rendering import moment
from controlplane.core.http.views import ApiView, ListView

FORMATS = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
SENT_AT_ONCE = 100


class ActorShape(serializers.Serializer[Any]):
    type = serializers.ChoiceField(ACTOR_TYPES)
    name = serializers.CharField()


class AuditEntryShape(serializers.Serializer[AuditEntry]):
    """`before` and `after` are the JSON values that the hash covers in canonical form."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = ActorShape()
    action = serializers.CharField()
    target = serializers.CharField()
    reason = serializers.CharField()
    before = serializers.JSONField()
    after = serializers.JSONField()
    request_id = serializers.CharField()
    ip = serializers.CharField()
    hash = serializers.CharField()


class AuditFilters(Filters):
    q = serializers.CharField(
        required=False,
        max_length=200,
        help_text="In the actor, action, target or reason. A text of fewer than 3 bytes is "
        f"searched in the newest {search.MAX_SCANNED:,} entries only; `searched_newest` says so.",
    )
    actor = serializers.CharField(
        required=False, max_length=220, help_text="A name, or type and name: `user:kim`."
    )
    action = serializers.CharField(required=False, max_length=64)
    target = serializers.CharField(required=False, max_length=200)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        # `from` can't be written as an attribute.
        return {
            **super().get_fields(),
            "from": Moment(required=False, help_text="From then on, inclusive."),
            "to": Moment(required=False, help_text="Until then, exclusive."),
        }


class ExportFilters(AuditFilters):
    format = serializers.ChoiceField(tuple(FORMATS), default="jsonl")


class AuditList(ListView[AuditEntry]):
    """The trail, newest first."""

    queryset = AuditEntry.objects.all()
    serializer_class = AuditEntryShape
    filters = AuditFilters
    ordering = "-id"
    read_scope = "audit:read"
    columns = (
        "id", "at", "actor_type", "actor_name", "action", "target", "reason", "before", "after",
        "request_id", "ip", "hash",
    )  # fmt: skip

    def chosen(self, rows: QuerySet[AuditEntry], filters: dict[str, Any]) -> QuerySet[AuditEntry]:
        text = filters.pop("q", None)
        rows = matching(rows, filters)
        if text is not None and search.is_short(text):
            return rows.filter(search.containing(text), search.among_newest())
        return rows  # Longer texts are searched by segment.

    def compile_sql(self, rows: QuerySet[Any, Any], page: Page) -> tuple[str, Sequence[Any]]:
        text = self._text()
        if text is None or search.is_short(text):
            return super().compile_sql(rows, page)
        return search.by_segment(
            rows,
            text,
            ascending=page.direction == BACKWARD,
            position=page.position,
            limit=page.limit + 1,
        )

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response = super().list(request, *args, **kwargs)
        text = self._text()
        if text is not None and search.is_short(text):
            response.data["searched_newest"] = search.MAX_SCANNED
        return response

    def _text(self) -> str | None:
        text: str | None = self.filters.of(self.request.query_params).get("q")
        return text

    def present(self, rows: Sequence[tuple[Any, ...]]) -> Sequence[dict[str, Any]]:
        return [_shown(*row) for row in rows]


class AuditExport(ApiView):
    filters = ExportFilters
    read_scope = "audit:read"
    http_method_names = ["get"]

    @extend_schema(
        responses={
            (200, "application/x-ndjson"): OpenApiResponse(OpenApiTypes.STR, "A row a line."),
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, "A header, then a row a line."),
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The trail, oldest first, as it is hashed. Without filters, as JSON lines, it verifies.

        In CSV a text that a spreadsheet would take for a formula gets a leading apostrophe.
        """
        filters = self.filters.of(request.query_params)
        chosen = filters.pop("format")
        text = filters.pop("q", "")
        rows = services.rows_of(matching(AuditEntry.objects.all(), filters), text)
        chunks = _chunks(_csv_lines(rows) if chosen == "csv" else _json_lines(rows))
        return file_responses.sent(
            request._request,
            chunks,
            content_type=FORMATS[chosen],
            name=f"switchgear-audit.{chosen}",
        )


def matching(entries: QuerySet[AuditEntry], filters: dict[str, Any]) -> QuerySet[AuditEntry]:
    """Return the entries that pass every filter but `q`.

    Raise :class:`InvalidInput` if `to` is before `from`.
    """
    since, until = filters.get("from"), filters.get("to")
    if since and until and since > until:
        raise InvalidInput({"to": ["Must not be before `from`."]})
    if since:
        entries = entries.filter(at__gte=since)
    if until:
        entries = entries.filter(at__lt=until)
    for field in ("action", "target"):
        if field in filters:
            entries = entries.filter(**{field: filters[field]})
    if "actor" in filters:
        entries = entries.filter(by_actor(filters["actor"]))
    return entries


def _shown(
    entry_id: int,
    at: datetime,
    actor_type: str,
    actor_name: str,
    action: str,
    target: str,
    reason: str,
    before: str,
    after: str,
    request_id: str,
    ip: str,
    digest: str,
) -> dict[str, Any]:
    """Return an entry; its values are sent as stored, so integers may have any size."""
    return {
        "id": entry_id,
        "at": moment(at),
        "actor": {"type": actor_type, "name": actor_name},
        "action": action,
        "target": target,
        "reason": reason,
        "before": orjson.Fragment(before),
        "after": orjson.Fragment(after),
        "request_id": request_id,
        "ip": ip,
        "hash": digest,
    }


def _json_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield orjson.dumps(row).decode() + "\n"


def _csv_lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    writer = csv.writer(_Echo(), quoting=csv.QUOTE_ALL)
    for row in csv_rows(rows):
        yield writer.writerow(row)


class _Echo:
    """A file that returns what is written to it."""

    def write(self, text: str) -> str:
        return text


def _chunks(lines: Iterator[str]) -> Iterator[bytes]:
    while chunk := "".join(islice(lines, SENT_AT_ONCE)):
        yield chunk.encode()
