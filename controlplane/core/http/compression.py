"""Gzip middleware for pages and lists, except responses that show secrets.

Against BREACH (guessing a secret from the length of a compressed page that repeats attacker-chosen
text): each page masks its CSRF token again, up to 99 random bytes blur the length, and responses
that show a secret are not compressed (docs/security.md).
"""

import gzip
import io
import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

from controlplane.core.content_encoding import MIN_BYTES, accepts_gzip, gzip_etag

LEVEL = 4
MAX_RANDOM_BYTES = 100
TYPES = ("text/html", "text/plain", "text/csv", "application/json", "application/yaml")
SECRET_PATHS = ("/sign-in/", "/confirm/", "/preferences/security/")
"""Path prefixes of password forms and of pages that show second-factor secrets."""

GetResponse = Callable[[HttpRequest], HttpResponse]


class CompressionMiddleware:
    """Compresses responses to GET of at least 1 KiB if the client accepts gzip.

    Responses to POST are never compressed, because they show new tokens and recovery codes.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not _is_compressible(request, response):
            return response
        patch_vary_headers(response, ("Accept-Encoding",))
        accepted = request.headers.get("Accept-Encoding", "").encode("latin-1", "replace")
        if accepts_gzip(accepted):
            response.content = _compress(response.content)
            response["Content-Length"] = str(len(response.content))
            response["Content-Encoding"] = "gzip"
            etag = response.get("ETag", "")
            if etag.startswith('"'):
                response["ETag"] = gzip_etag(etag.encode("latin-1")).decode("latin-1")
        return response


def _is_compressible(request: HttpRequest, response: HttpResponse) -> bool:
    kind = response.get("Content-Type", "").partition(";")[0]
    return (
        request.method == "GET"
        and response.status_code == 200
        and not response.streaming
        and "Content-Encoding" not in response
        and kind in TYPES
        and len(response.content) >= MIN_BYTES
        and not request.path.startswith(SECRET_PATHS)
    )


def _compress(content: bytes) -> bytes:
    # A random file name in the gzip header blurs the length.
    name = "x" * secrets.randbelow(MAX_RANDOM_BYTES)
    compressed = io.BytesIO()
    with gzip.GzipFile(name, "wb", LEVEL, compressed, mtime=0) as file:
        file.write(content)
    return compressed.getvalue()
