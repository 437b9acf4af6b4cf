"""RFC 9457 problem documents and headers of errors, for Django and the data plane."""

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


def problem_document(error: DomainError) -> dict[str, Any]:
    return {
        "type": TYPE + error.slug,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        **error.extra,
    }


def problem_headers(error: DomainError) -> dict[str, str]:
    """Return the headers of an error response, apart from its content type and length."""
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="switchgear"'
    if isinstance(error, Unavailable | TooManyRequests):
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, MethodNotAllowed) and error.allowed:
        headers["Allow"] = ", ".join(error.allowed)
    return headers
