"""RFC 9457: the document and the headers of an error, one for Django and for the data plane. Pure.

`type` is `urn:switchgear:problem:<slug>`: a name to compare, not an address to fetch.
"""

from typing import Any

from controlplane.core.errors import (
    DomainError,
    MethodNotAllowed,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:switchgear:problem:"


def document(error: DomainError) -> dict[str, Any]:
    """Return the RFC 9457 document of an error."""
    return {
        "type": TYPE + error.slug,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        **error.extra,
    }


def headers(error: DomainError) -> dict[str, str]:
    """Return the headers of an error response, independent of its body."""
    found = {"Cache-Control": "no-store"}
    if isinstance(error, Unauthenticated):
        found["WWW-Authenticate"] = 'Bearer realm="switchgear"'
    if isinstance(error, Unavailable | TooManyRequests):
        found["Retry-After"] = str(error.retry_after)
    if isinstance(error, MethodNotAllowed) and error.allowed:
        found["Allow"] = ", ".join(error.allowed)
    return found
