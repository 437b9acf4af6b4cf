"""Gzip for answers of Django: pages and lists, but nothing that shows a secret.

Protection against BREACH (guessing a secret from the length of a compressed page that repeats
attacker-chosen text): CSRF tokens are masked anew in every page, up to 99 random bytes blur the
length, and answers that show a secret are never compressed (docs/security.md).
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
"""Path prefixes of password forms and secrets of second factors."""

GetResponse = Callable[[HttpRequest], HttpResponse]


class CompressionMiddleware:
    """Compress whole answers to GET of at least 1 KiB, for callers that accept gzip.

    Answers to POST are never compressed: they show new tokens and recovery codes.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not _may_be_compressed(request, response):
            return response
        patch_vary_headers(response, ("Accept-Encoding",))
        accepted = request.headers.get("Accept-Encoding", "").encode("latin-1", "replace")
        if accepts_gzip(accepted):
            response.content = _compressed(response.content)
            response["Content-Length"] = str(len(response.content))
            response["Content-Encoding"] = "gzip"
            etag = response.get("ETag", "")
            if etag.startswith('"'):
                response["ETag"] = gzip_etag(etag.encode("latin-1")).decode("latin-1")
        return response


def _may_be_compressed(request: HttpRequest, response: HttpResponse) -> bool:
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


def _compressed(content: bytes) -> bytes:
    """Return `content` in gzip format, with a random file name to blur the length."""
    name = "x" * secrets.randbelow(MAX_RANDOM_BYTES)
    made = io.BytesIO()
    with gzip.GzipFile(name, "wb", LEVEL, made, mtime=0) as file:
        file.write(content)
    return made.getvalue()
