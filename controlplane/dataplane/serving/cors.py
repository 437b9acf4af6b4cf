"""Cross-origin requests of browsers (CORS).

Origins of the setting `CORS_ORIGINS` may evaluate switches. Credentials are never allowed: a token
authorizes such a request, not a cookie.
"""

from collections.abc import Container

from controlplane.dataplane.memory.compression import Header
from controlplane.dataplane.memory.credentials import Headers

from .responses import Response

PREFLIGHT_SECONDS = 600
VARY_BY_ORIGIN: Header = (b"vary", b"origin")
REQUEST_HEADERS = (
    b"authorization, x-api-key, content-type, if-none-match, last-event-id, x-request-id, "
    b"switchgear-instance, switchgear-applied"
)
EXPOSED_HEADERS = (
    b"etag, retry-after, x-request-id, switchgear-version, switchgear-age, switchgear-time, "
    b"switchgear-signature"
)


def response_headers(origins: Container[bytes], headers: Headers) -> tuple[Header, ...]:
    """Return the headers of every response of a path that other origins may call."""
    origin = headers.get(b"origin")
    if origin is None or origin not in origins:
        return (VARY_BY_ORIGIN,)
    return (
        VARY_BY_ORIGIN,
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", EXPOSED_HEADERS),
    )


def answer_preflight(
    origins: Container[bytes], headers: Headers, methods: tuple[str, ...]
) -> Response | None:
    """Return the response to a preflight request; None if it isn't one of an allowed origin."""
    if headers.get(b"origin") not in origins or b"access-control-request-method" not in headers:
        return None
    allowed: list[Header] = [
        (b"access-control-allow-methods", ", ".join(methods).encode()),
        (b"access-control-allow-headers", REQUEST_HEADERS),
        (b"access-control-max-age", str(PREFLIGHT_SECONDS).encode()),
        (b"content-length", b"0"),
    ]
    return 204, allowed, b""
