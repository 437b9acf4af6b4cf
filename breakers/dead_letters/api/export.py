"""API endpoint that streams a stream's letters as a file."""

from collections.abc import Iterator

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from breakers.dead_letters import export, letter_list
from breakers.dead_letters.letters.redaction import configured_redaction
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import samples
from controlplane.core.clock import db_now
from controlplane.core.http import file_responses

from .bodies import LetterExportFilters
from .messages import DeadLetterView, find_letter_stream

SENT_AT_ONCE = 64 * 1024  # bytes, at least one letter


class ExportView(DeadLetterView):
    filters = LetterExportFilters
    http_method_names = ["get"]

    @extend_schema(
        operation_id="dlq_export",
        responses={
            (200, "application/x-ndjson"): OpenApiResponse(OpenApiTypes.STR, "A letter a line."),
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, "A header, then a letter a line."),
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
        rows = export.iterate_letters(stream, chosen, until=until, redaction=configured_redaction())
        chunks = _join_lines(export.render_lines(rows, given["format"]))
        return file_responses.stream_file(
            request._request,
            chunks,
            content_type=export.FORMATS[given["format"]],
            name=f"dead-letters.{given['format']}",
        )


def _join_lines(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield chunks of about `SENT_AT_ONCE` bytes."""
    chunk = bytearray()
    for line in lines:
        chunk += line
        if len(chunk) >= SENT_AT_ONCE:
            yield bytes(chunk)
            chunk.clear()
    if chunk:
        yield bytes(chunk)
