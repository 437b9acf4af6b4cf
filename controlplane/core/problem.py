"""RFC 9457 problem documents and headers of errors, for Django and the data plane."""

from typing import Any

from controlplane.core import errors

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:switchgear:problem:"


def problem_document(error: errors.DomainError) -> dict[str, Any]:
    return {
        "type": TYPE + error.slug,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        **error.extra,
    }


def problem_headers(error: errors.DomainError) -> dict[str, str]:
    """Return the headers of an error response, apart from its content type and length."""
    headers = {"Cache-Control": "no-store"}
    if isinstance(error, errors.Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="switchgear"'
    if isinstance(error, errors.Unavailable | errors.TooManyRequests):
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, errors.MethodNotAllowed) and error.allowed:
        headers["Allow"] = ", ".join(error.allowed)
    return headers
