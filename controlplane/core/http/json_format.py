"""JSON parsing and rendering for the API: strict input, JSON output only."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import IO, Any

import orjson
from django.utils.http import parse_header_parameters
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from controlplane.core.canonical import timestamp
from controlplane.core.errors import DomainError, InvalidInput
from controlplane.core.protocol import max_body_bytes, too_large

MAX_DEPTH = 32


def dumps(value: Any) -> bytes:
    """Return JSON in UTF-8; integers may exceed the 64 bits that orjson supports."""
    try:
        return orjson.dumps(value, option=orjson.OPT_UTC_Z)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def format_moment(at: datetime | None) -> datetime | str | None:
    """Return a value that :func:`dumps` renders as the canonical timestamp of a UTC time.

    Faster than calling `canonical.timestamp` for each time.
    """
    return at if at is None or at.microsecond else timestamp(at)


class JSONRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return b"" if data is None else dumps(data)


class OneFormat(BaseContentNegotiation):
    """Content negotiation that ignores `Accept` and renders the view's only format."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """Return the parser for the body's media type; None if there is no such parser."""
        content_type = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == content_type), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        only = next(iter(renderers))
        return only, str(only.media_type)


class StrictJSONParser(BaseParser):
    """Parser of one JSON object in UTF-8, within the size limit of the request's path.

    The last of duplicate keys counts. orjson rejects NaN, numbers beyond a double, lone surrogates
    and a byte order mark.
    """

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        self.require_utf8(media_type or "")
        # Read no more than the limit: the length of a chunked body is unknown.
        request = (parser_context or {}).get("request")
        limit = max_body_bytes(request.path if request is not None else "")
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise too_large(limit)
        return loads_object(body)

    def require_utf8(self, media_type: str) -> None:
        """Raise :class:`UnsupportedMediaType` if the media type has another charset than UTF-8."""
        charset = str(parse_header_parameters(media_type)[1].get("charset", "")).lower()
        if charset not in {"", "utf-8", "utf8"}:
            raise UnsupportedMediaType(
                media_type, f"JSON must be UTF-8; don't send the charset {charset}."
            )


def loads_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in `body`; empty for an empty body.

    Raises :class:`DomainError` if the body is not a JSON object, and :class:`InvalidInput`, by
    field, for null characters, which PostgreSQL can't store.
    """
    if not body.strip():
        return {}
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise DomainError(f"The body is not valid JSON in UTF-8: {error}.") from error
    if not isinstance(value, dict):
        raise DomainError('The body must be a JSON object: {"field": value, …}.')
    errors = {
        path: ["Null characters (U+0000) are not allowed."]
        for path, text in _find_texts(value)
        if "\x00" in text
    }
    if errors:
        raise InvalidInput(errors)
    return value


def _find_texts(value: Any, path: str = "", depth: int = 1) -> Iterator[tuple[str, str]]:
    """Yield each text in a JSON value, keys included, with its path: `evidence.labels.0`."""
    if depth > MAX_DEPTH:
        raise InvalidInput(
            {path.partition(".")[0]: [f"Nested deeper than {MAX_DEPTH} levels; flatten it."]}
        )
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            shown = str(key).replace("\x00", "\\u0000")
            below = f"{path}.{shown}" if path else shown
            if isinstance(key, str):
                yield below, key
            yield from _find_texts(item, below, depth + 1)
