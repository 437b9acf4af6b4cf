"""Documents and headers of errors, for Django and the data plane: RFC 9457, and SCIM's RFC 7644."""

from typing import Any

from controlplane.core import errors
from controlplane.core.console_urls import SCIM_ROOT

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:switchgear:problem:"
SCIM_MEDIA_TYPE = "application/scim+json"
SCIM_ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"


def describe_error(error: errors.DomainError, path: str) -> tuple[str, dict[str, Any]]:
    """Return media type and document of an error, in the form that clients of the path expect."""
    if path.startswith(SCIM_ROOT):
        return SCIM_MEDIA_TYPE, _scim_document(error)
    return MEDIA_TYPE, problem_document(error)


def problem_document(error: errors.DomainError) -> dict[str, Any]:
    return {
        "type": TYPE + error.slug,
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        **error.extra,
    }


def _scim_document(error: errors.DomainError) -> dict[str, Any]:
    kind = error.extra.get("scimType")
    if kind is None and isinstance(error, errors.InvalidInput):
        kind = "invalidValue"
    return {
        "schemas": [SCIM_ERROR],
        "status": str(error.status),
        **({"scimType": kind} if kind else {}),
        "detail": error.detail,
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
