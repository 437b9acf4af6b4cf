"""Maps each request failure to a domain error, and that to problem+json."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from django.core import exceptions as django_errors
from django.db import Error as DatabaseError
from django.http import Http404, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions as drf_errors

from controlplane.core import problem
from controlplane.core.database_errors import READ_ONLY, is_away, sqlstate
from controlplane.core.errors import (
    NO_DATABASE,
    Broken,
    DomainError,
    Forbidden,
    InvalidInput,
    MethodNotAllowed,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from controlplane.core.http.rendering import dumps

BUSY_STATES = {
    "55P03",  # lock_not_available: lock_timeout
    "57014",  # query_canceled: statement_timeout
    "40001",  # serialization_failure
    "40P01",  # deadlock_detected
}

log = structlog.get_logger(__name__)


class NotAcceptable(DomainError):
    status = 406
    slug = "not-acceptable"
    title = "There is no answer in a form the caller accepts"


class UnsupportedMediaType(DomainError):
    status = 415
    slug = "unsupported-media-type"
    title = "The body's content type is not one that is read here"


def respond(error: DomainError) -> HttpResponse:
    response = HttpResponse(
        dumps(problem.document(error)),
        status=error.status,
        content_type=problem.MEDIA_TYPE,
        headers=problem.headers(error),
    )
    return quietly(response)


def quietly(response: HttpResponse) -> HttpResponse:
    """Keep Django from logging each 503 of an outage as an error.

    `as_domain_error` has logged the cause; unexpected errors take another path.
    """
    if response.status_code != Broken.status:
        setattr(response, "_has_been_logged", True)  # noqa: B010 - Django's own mark
    return response


def handle_exception(exc: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """DRF's exception handler; returning None lets Django log the error and answer with a 500."""
    error = as_domain_error(exc)
    return None if error is None else respond(error)


def as_domain_error(exc: BaseException) -> DomainError | None:
    """Return the domain error for an exception; None if it is unexpected."""
    if isinstance(exc, DomainError):
        return exc
    if isinstance(exc, DatabaseError):
        return _database_error(exc)
    for kind, translate in _TRANSLATIONS:
        if isinstance(exc, kind):
            return translate(exc)
    return None


def _database_error(exc: DatabaseError) -> DomainError | None:
    """503 for a database that is away, frozen or busy; a mistake in our SQL stays unforeseen."""
    if not is_away(exc):
        return None
    state = sqlstate(exc)
    cause = next(iter(str(exc).splitlines()), "") or type(exc).__name__
    log.warning("database.unavailable", sqlstate=state, cause=cause)
    if state in BUSY_STATES or getattr(exc, "nothing_changed", False):
        return Unavailable(
            "Others are changing the same thing, and it took too long. Nothing was changed; "
            "try again.",
            retry_after=1,
        )
    if state == READ_ONLY:
        return Unavailable("PostgreSQL is read-only, so nothing was changed.", retry_after=3)
    return Unavailable(NO_DATABASE, retry_after=3)


def _not_found(exc: Any) -> DomainError:
    return NotFound("Nothing is at this address.")


def _forbidden(exc: Any) -> DomainError:
    return Forbidden(str(exc) or "These credentials may not do this.")


def _unauthenticated(exc: Any) -> DomainError:
    return Unauthenticated(
        "Send an API token as `Authorization: Bearer sg_<prefix>_<secret>` or `X-API-Key`, "
        "or sign in."
    )


def _bad_request(exc: Any) -> DomainError:
    return DomainError("The request could not be read; check its body, headers and address.")


def _too_large(exc: Any) -> DomainError:
    return TooLarge("The request body is too large.")


def _invalid_input(exc: drf_errors.ValidationError) -> DomainError:
    return InvalidInput(dict(_flattened(exc.detail)))


def _invalid_model(exc: django_errors.ValidationError) -> DomainError:
    if hasattr(exc, "error_dict"):
        return InvalidInput(exc.message_dict)
    return InvalidInput({"body": exc.messages})


def _method_not_allowed(exc: Any) -> DomainError:
    return MethodNotAllowed(f"{exc.detail} The header Allow lists those that are.")


def _not_acceptable(exc: Any) -> DomainError:
    return NotAcceptable("Change or leave out the header Accept.")


def _unsupported_media_type(exc: Any) -> DomainError:
    return UnsupportedMediaType("Send the body as Content-Type: application/json, in UTF-8.")


def _too_many_requests(exc: drf_errors.Throttled) -> DomainError:
    return TooManyRequests(
        str(exc.detail), retry_after=max(1, math.ceil(getattr(exc, "wait", None) or 1))
    )


def _flattened(detail: Any, path: str = "") -> list[tuple[str, list[str]]]:
    """Return nested errors as a flat list: `{"a": {"b": ["…"]}}` → `[("a.b", ["…"])]`."""
    if isinstance(detail, dict):
        found = []
        for key, below in detail.items():
            name = "" if key == "non_field_errors" else str(key)
            found += _flattened(below, ".".join(part for part in (path, name) if part))
        return found
    texts = detail if isinstance(detail, list) else [detail]
    if any(isinstance(text, dict) for text in texts):
        return _flattened({str(place): text for place, text in enumerate(texts) if text}, path)
    return [(path or "body", [str(text) for text in texts])]


_TRANSLATIONS: tuple[tuple[type[Exception], Callable[[Any], DomainError]], ...] = (
    (Http404, _not_found),
    (drf_errors.NotFound, _not_found),
    (drf_errors.NotAuthenticated, _unauthenticated),
    (drf_errors.AuthenticationFailed, _unauthenticated),
    (drf_errors.PermissionDenied, _forbidden),
    (django_errors.PermissionDenied, _forbidden),
    (drf_errors.ValidationError, _invalid_input),
    (django_errors.ValidationError, _invalid_model),
    (drf_errors.MethodNotAllowed, _method_not_allowed),
    (drf_errors.NotAcceptable, _not_acceptable),
    (drf_errors.UnsupportedMediaType, _unsupported_media_type),
    (drf_errors.Throttled, _too_many_requests),
    (drf_errors.ParseError, _bad_request),
    (django_errors.RequestDataTooBig, _too_large),
    (django_errors.BadRequest, _bad_request),
    (django_errors.SuspiciousOperation, _bad_request),
    (MultiPartParserError, _bad_request),
    (UnreadablePostError, _bad_request),
)
