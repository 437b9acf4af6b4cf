"""Streaming export of a stream's letters as JSON lines or CSV."""

import csv
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from controlplane.core.audit.services import FORMULA_STARTS

from . import letter_list
from .letters import ids
from .letters.filters import LetterFilter
from .letters.presentation import NO_LIMITS, letter_resource
from .letters.redaction import Redaction
from .models import LetterStream

COLUMNS = (
    "id", "failed_at", "added_at", "error_type", "error", "fingerprint", "attempts", "group",
    "original_id", "retries", "retry_of", "size_bytes", "fields",
)  # fmt: skip
FORMATS = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


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


class _EchoWriter:
    def write(self, text: str) -> str:
        return text
