"""Content negotiation for gzip by RFC 9110; runs without Django."""

import zlib
from functools import lru_cache

MIN_BYTES = 1024
"""Minimum body size in bytes; compressing a smaller body saves no packet."""
GZIP_WINDOW = 31  # zlib's largest window, with gzip's header and checksum around it


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: bytes) -> bool:
    """Return True if an `Accept-Encoding` header allows gzip and doesn't prefer `identity`."""
    weights: dict[bytes, float] = {}
    for element in accept_encoding.lower().split(b","):
        coding, *parameters = (part.strip() for part in element.split(b";"))
        weights[coding] = _weight(parameters)
    gzip = weights.get(b"gzip", weights.get(b"x-gzip", weights.get(b"*", 0.0)))
    return gzip > 0 and gzip >= weights.get(b"identity", 0.0)


def compress_gzip(body: bytes, level: int) -> bytes:
    """Return `body` in gzip format, without a name or a modification time."""
    return zlib.compress(body, level, GZIP_WINDOW)


def gzip_etag(etag: bytes) -> bytes:
    """Return the ETag of a gzipped body, derived from the strong, quoted ETag of the plain body."""
    return etag[:-1] + b'-gzip"'


def _weight(parameters: list[bytes]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition(b"=")
        if name.strip() == b"q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
