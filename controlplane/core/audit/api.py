"""Audit trail API: search by pages, and export as a stream."""

import csv
from collections.abc import Iterable, Iterator, Sequence
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
from controlplane.core.audit.models import ACTOR_TYPES, AuditEntry, match_actor
from controlplane.core.errors import InvalidInput
from controlplane.core.http import file_responses
from controlplane.core.http.fields import Filters, Moment
from controlplane.core.http.json_format import format_moment
from controlplane.core.http.pagination import BACKWARD, Page
from controlplane.core.http.views import ApiView, ColumnListView

FORMATS = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
LINES_PER_CHUNK = 100


class ActorShape(serializers.Serializer[Any]):
    type = serializers.ChoiceField(ACTOR_TYPES)
    name = serializers.CharField()


class AuditEntryShape(serializers.Serializer[AuditEntry]):
    """An audit entry; its hash covers `before` and `after` as canonical JSON."""

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
        help_text="Text in the actor, action, target or reason. A text of fewer than 3 bytes is "
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
            "from": Moment(required=False, help_text="Start, inclusive."),
            "to": Moment(required=False, help_text="End, exclusive."),
        }


class ExportFilters(AuditFilters):
    format = serializers.ChoiceField(tuple(FORMATS), default="jsonl")


class AuditList(ColumnListView[AuditEntry]):
    """The audit trail, newest first."""

    queryset = AuditEntry.objects.all()
    serializer_class = AuditEntryShape
    filters = AuditFilters
    ordering = "-id"
    read_scope = "audit:read"
    columns = (
        "id", "at", "actor_type", "actor_name", "action", "target", "reason", "before", "after",
        "request_id", "ip", "hash",
    )  # fmt: skip

    def apply_filters(
        self, rows: QuerySet[AuditEntry], filters: dict[str, Any]
    ) -> QuerySet[AuditEntry]:
        text = filters.pop("q", None)
        rows = filter_entries(rows, filters)
        if text is not None and search.is_short(text):
            return rows.filter(search.match_text(text), search.match_newest())
        return rows  # Longer texts are searched by segment.

    def compile_sql(self, rows: QuerySet[Any, Any], page: Page) -> tuple[str, Sequence[Any]]:
        text = self._search_text()
        if text is None or search.is_short(text):
            return super().compile_sql(rows, page)
        return search.build_segment_query(
            rows,
            text,
            ascending=page.direction == BACKWARD,
            position=page.position,
            limit=page.limit + 1,
        )

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        response = super().list(request, *args, **kwargs)
        text = self._search_text()
        if text is not None and search.is_short(text):
            response.data["searched_newest"] = search.MAX_SCANNED
        return response

    def _search_text(self) -> str | None:
        text: str | None = self.filters.parse(self.request.query_params).get("q")
        return text

    def present(self, rows: Sequence[tuple[Any, ...]]) -> Sequence[dict[str, Any]]:
        # `before` and `after` are sent as stored, so their integers may have any size.
        shown = []
        for entry_id, at, actor_type, actor_name, *rest in rows:
            values = dict(zip(self.columns[4:], rest, strict=True))
            values |= {name: orjson.Fragment(values[name]) for name in ("before", "after")}
            actor = {"type": actor_type, "name": actor_name}
            shown.append({"id": entry_id, "at": format_moment(at), "actor": actor, **values})
        return shown


class AuditExport(ApiView):
    filters = ExportFilters
    read_scope = "audit:read"
    http_method_names = ["get"]

    @extend_schema(
        responses={
            (200, "application/x-ndjson"): OpenApiResponse(
                OpenApiTypes.STR, "One JSON object per line."
            ),
            (200, "text/csv"): OpenApiResponse(
                OpenApiTypes.STR, "A header, then one entry per line."
            ),
        }
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export the trail as JSON lines or CSV, oldest first.

        An unfiltered JSON export has all values that the hashes cover, so it can be verified. In
        CSV, texts that a spreadsheet would run as a formula get a leading apostrophe.
        """
        filters = self.filters.parse(request.query_params)
        file_format = filters.pop("format")
        text = filters.pop("q", "")
        rows = services.read_entries(filter_entries(AuditEntry.objects.all(), filters), text)
        lines = (
            _format_csv(rows)
            if file_format == "csv"
            else (orjson.dumps(row).decode() + "\n" for row in rows)
        )
        return file_responses.stream_file(
            request._request,
            iter(lambda: "".join(islice(lines, LINES_PER_CHUNK)).encode(), b""),
            content_type=FORMATS[file_format],
            name=f"switchgear-audit.{file_format}",
        )


def filter_entries(entries: QuerySet[AuditEntry], filters: dict[str, Any]) -> QuerySet[AuditEntry]:
    """Return the entries that match all filters except `q`, the text search.

    Raises :class:`InvalidInput` if `to` is before `from`.
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
        entries = entries.filter(match_actor(filters["actor"]))
    return entries


def _format_csv(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    writer = csv.writer(_Echo(), quoting=csv.QUOTE_ALL)
    return map(writer.writerow, services.build_csv_rows(rows))


class _Echo:
    def write(self, text: str) -> str:
        return text
