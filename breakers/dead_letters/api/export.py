"""API endpoint that streams a stream's letters as a file."""

import csv
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from breakers.dead_letters import letter_list
from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.entries import NO_LIMITS
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.letters.presentation import letter_resource
from breakers.dead_letters.letters.redaction import Redaction, configured_redaction
from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import samples
from controlplane.core.audit.services import FORMULA_STARTS
from controlplane.core.clock import db_now
from controlplane.core.http import file_responses

from .bodies import LetterFilters
from .messages import DeadLetterView, find_letter_stream

SENT_AT_ONCE = 64 * 1024  # bytes, at least one letter
COLUMNS = (
    "id", "failed_at", "added_at", "error_type", "error", "fingerprint", "attempts", "group",
    "original_id", "retries", "retry_of", "size_bytes", "fields",
)  # fmt: skip
FORMATS = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


class LetterExportFilters(LetterFilters):
    format = serializers.ChoiceField(tuple(FORMATS), default="jsonl")


class ExportView(DeadLetterView):
    filters = LetterExportFilters
    http_method_names = ["get"]

    @extend_schema(
        operation_id="dlq_export",
        responses={
            (200, "application/x-ndjson"): OpenApiResponse(
                OpenApiTypes.STR, "One letter per line."
            ),
            (200, "text/csv"): OpenApiResponse(
                OpenApiTypes.STR, "A header, then one letter per line."
            ),
        },
    )
    def get(self, request: Request, name: str) -> StreamingHttpResponse:
        """Export every matching letter, whole but redacted, oldest first.

        Letters that arrive during the export are left out. In CSV, fields are JSON, and a text that
        a spreadsheet would run as a formula starts with an apostrophe. The file ends early if the
        Redis server becomes unavailable, or if the token or session ends.
        """
        given = self.filters.parse(request.query_params)
        now = db_now()
        stream = find_letter_stream(given["server"], name, now)
        chosen = self.filters.build_filter(given)
        if chosen.uses_index:
            indexer.catch_up(stream, now, seconds=letter_list.PAGE_SECONDS)
        until = samples.sample_stream(stream.server, stream.name).last
        rows = iterate_letters(stream, chosen, until=until, redaction=configured_redaction())
        chunks = _join_lines(render_lines(rows, given["format"]))
        return file_responses.stream_file(
            request._request,
            chunks,
            content_type=FORMATS[given["format"]],
            name=f"dead-letters.{given['format']}",
        )


def iterate_letters(
    stream: LetterStream, chosen: LetterFilter, *, until: str, redaction: Redaction
) -> Iterator[dict[str, Any]]:
    """Yield every letter that matches the filter up to the id `until`, oldest first.

    Raises :class:`ServerUnavailable`, possibly after some letters were yielded.
    """
    last = ids.to_position(until) if until else ""
    cursor, limit = "", letter_list.MAX_PAGE
    while last:
        page = letter_list.read_page(
            stream, chosen, cursor=cursor, limit=limit, newest_first=False, whole=True
        )
        for entry in page.entries:
            if entry.position > last:
                return
            yield letter_resource(entry, redaction=redaction, measure=NO_LIMITS)
        cursor = page.next
        if not cursor or ids.to_position(cursor) >= last:
            return


def render_lines(rows: Iterable[dict[str, Any]], format: str) -> Iterator[bytes]:
    """Yield the lines of the export file; CSV cells that look like formulas get an apostrophe."""
    if format == "jsonl":
        for row in rows:
            yield orjson.dumps(row) + b"\n"
        return
    writer = csv.writer(_EchoWriter(), quoting=csv.QUOTE_ALL)
    yield writer.writerow(COLUMNS).encode()
    for row in rows:
        yield writer.writerow([_render_cell(row[column]) for column in COLUMNS]).encode()


def _render_cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _join_lines(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Join the lines to chunks of about `SENT_AT_ONCE` bytes, and yield the chunks."""
    chunk = bytearray()
    for line in lines:
        chunk += line
        if len(chunk) >= SENT_AT_ONCE:
            yield bytes(chunk)
            chunk.clear()
    if chunk:
        yield bytes(chunk)


class _EchoWriter:
    def write(self, text: str) -> str:
        return text
