"""Conversion of exceptions to domain errors, and of domain errors to problem+json responses."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from django.core import exceptions as django_errors
from django.db import Error as DatabaseError
from django.http import Http404, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions as drf_errors

from controlplane.core import authority, problem
from controlplane.core.database_errors import READ_ONLY, find_sqlstate, is_away
from controlplane.core.errors import (
    NO_DATABASE,
    DomainError,
    Forbidden,
    InternalError,
    InvalidInput,
    MethodNotAllowed,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from controlplane.core.http.json_format import dumps

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
    title = "No acceptable response format"


class UnsupportedMediaType(DomainError):
    status = 415
    slug = "unsupported-media-type"
    title = "Unsupported content type of the body"


def build_problem_response(error: DomainError, path: str = "") -> HttpResponse:
    """Return the response to a request of the path, in the form that its clients expect."""
    media_type, document = problem.describe_error(error, path)
    response = HttpResponse(
        dumps(document),
        status=error.status,
        content_type=media_type,
        headers=problem.problem_headers(error),
    )
    return suppress_log(response)


def suppress_log(response: HttpResponse) -> HttpResponse:
    """Mark a response as logged, so that Django doesn't log each 503 of an outage as an error.

    `as_domain_error` has logged the cause. Unexpected errors (500) stay unmarked.
    """
    if response.status_code != InternalError.status:
        setattr(response, "_has_been_logged", True)  # noqa: B010 - Django's own mark
    return response


def handle_exception(exc: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """Handle an exception of an API view; None lets Django log it and respond with 500."""
    error = as_domain_error(exc)
    request = context.get("request")
    path = request.path if request is not None else ""
    if error is None:
        return None
    if isinstance(error, Forbidden) and "owner" in error.extra:
        error.extra["on_call"] = authority.find_on_call(error.extra) or None
    return build_problem_response(error, path)


def as_domain_error(exc: BaseException) -> DomainError | None:
    """Return the domain error for an exception; None if the exception is unexpected."""
    if isinstance(exc, DomainError):
        return exc
    if isinstance(exc, DatabaseError):
        return _translate_database_error(exc)
    for kind, translate in _TRANSLATIONS:
        if isinstance(exc, kind):
            return translate(exc)
    return None


def _translate_database_error(exc: DatabaseError) -> DomainError | None:
    """Return :class:`Unavailable` if the database is down or busy; None for errors in our SQL."""
    if not is_away(exc):
        return None
    state = find_sqlstate(exc)
    cause = next(iter(str(exc).splitlines()), "") or type(exc).__name__
    log.warning("database.unavailable", sqlstate=state, cause=cause)
    if state in BUSY_STATES or getattr(exc, "nothing_changed", False):
        return Unavailable(
            "Other requests are changing the same object, and this one timed out. Nothing changed;"
            " try again.",
            retry_after=1,
        )
    if state == READ_ONLY:
        return Unavailable("PostgreSQL is read-only, so nothing was changed.", retry_after=3)
    return Unavailable(NO_DATABASE, retry_after=3)


def _flatten_errors(detail: Any, path: str = "") -> list[tuple[str, list[str]]]:
    """Return nested errors as a flat list: `{"a": {"b": ["…"]}}` → `[("a.b", ["…"])]`."""
    if isinstance(detail, dict):
        errors = []
        for key, below in detail.items():
            name = "" if key == "non_field_errors" else str(key)
            errors += _flatten_errors(below, ".".join(part for part in (path, name) if part))
        return errors
    texts = detail if isinstance(detail, list) else [detail]
    if any(isinstance(text, dict) for text in texts):
        return _flatten_errors({str(place): text for place, text in enumerate(texts) if text}, path)
    return [(path or "body", [str(text) for text in texts])]


def _translate_model_error(exc: django_errors.ValidationError) -> DomainError:
    return InvalidInput(exc.message_dict if hasattr(exc, "error_dict") else {"body": exc.messages})


_UNAUTHENTICATED = (
    "Send an API token as `Authorization: Bearer sg_<prefix>_<secret>` or `X-API-Key`, or sign in."
)
_TRANSLATIONS: tuple[
    tuple[type[Exception] | tuple[type[Exception], ...], Callable[[Any], DomainError]], ...
] = (
    ((Http404, drf_errors.NotFound), lambda _: NotFound("There is no resource at this address.")),
    (
        (drf_errors.NotAuthenticated, drf_errors.AuthenticationFailed),
        lambda _: Unauthenticated(_UNAUTHENTICATED),
    ),
    (
        (drf_errors.PermissionDenied, django_errors.PermissionDenied),
        lambda exc: Forbidden(str(exc) or "These credentials don't allow this."),
    ),
    (drf_errors.ValidationError, lambda exc: InvalidInput(dict(_flatten_errors(exc.detail)))),
    (django_errors.ValidationError, _translate_model_error),
    (
        drf_errors.MethodNotAllowed,
        lambda exc: MethodNotAllowed(f"{exc.detail} The header Allow lists the allowed methods."),
    ),
    (drf_errors.NotAcceptable, lambda _: NotAcceptable("Change or leave out the header Accept.")),
    (
        drf_errors.UnsupportedMediaType,
        lambda _: UnsupportedMediaType(
            "Send the body as Content-Type: application/json, in UTF-8."
        ),
    ),
    (
        drf_errors.Throttled,
        lambda exc: TooManyRequests(
            str(exc.detail), retry_after=max(1, math.ceil(getattr(exc, "wait", None) or 1))
        ),
    ),
    (django_errors.RequestDataTooBig, lambda _: TooLarge("The request body is too large.")),
    (
        (
            drf_errors.ParseError,
            django_errors.BadRequest,
            django_errors.SuspiciousOperation,
            MultiPartParserError,
            UnreadablePostError,
        ),
        lambda _: DomainError(
            "The request could not be read; check its body, headers and address."
        ),
    ),
)
