"""The labels of an error: its HTTP status, its codes, and whether it is a timeout.

Errors of httpx, requests, urllib3, aiohttp, openai, anthropic, redis, psycopg and grpc are
recognized by their names and attributes, so none of them is imported. Nothing here raises, whatever
its argument; a response is accepted in place of an error.
"""

import re
from collections.abc import Mapping
from typing import Any

from switchgear.journal import escape
from switchgear.refusals import walk_errors

MAX_LABEL_LENGTH = 100
MAX_RETRY_AFTER_SECONDS = 999_999_999.0

NON_RETRYABLE_LABELS: frozenset[str | int] = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached"}
)
"""Labels of errors that a retry does not fix, although their HTTP status suggests a retry."""

_ALIASES: Mapping[str | int, str] = {
    "rate_limit_error": "rate_limit_exceeded",
    "RateLimitError": "rate_limit_exceeded",
    "overloaded_error": "model_overloaded",
    529: "model_overloaded",
    "authentication_error": "invalid_api_key",
    "AuthenticationError": "invalid_api_key",
    "content_filter": "content_policy_violation",
    "content_policy": "content_policy_violation",
}
"""Standard labels by the names that providers use."""

_STATUS_OF_GRPC: Mapping[str, int] = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "ALREADY_EXISTS": 409,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}

_TIMEOUT_NAMES = re.compile(
    r"(Timeout|TimeoutError|TimeoutException|TimedOut|DeadlineExceeded|TimeLimitExceeded)$"
)
_STOP_REQUESTS = frozenset({"SoftTimeLimitExceeded"})  # celery
_CONNECTION_NAMES = frozenset(
    {
        "ConnectionError", "ConnectError", "NetworkError", "RemoteProtocolError",  # requests, httpx
        "APIConnectionError", "ClientConnectionError", "ServerDisconnectedError",  # openai, aiohttp
        "NewConnectionError", "ProtocolError", "IncompleteRead",  # urllib3
        "BusyLoadingError", "gaierror", "IncompleteReadError", "ConnectionClosed",
    }
)  # fmt: skip
_DRIVER_ERRORS = frozenset({"OperationalError", "InterfaceError"})
_LOST_CONNECTION = re.compile(r"08|57P0[123]")
"""SQLSTATE codes of a failed connection, or of a server that shuts down or starts up."""
_LOCKED_SQLITE = frozenset({5, 6})
"""SQLITE_BUSY and SQLITE_LOCKED: the low byte of extended codes."""
_LOST_MYSQL = frozenset({1040, 1053, 2002, 2003, 2006, 2013, 2055})
"""MySQL errors: too many connections, server shutting down, unreachable, gone away or lost."""
_TOO_LONG = re.compile(r"prompt is too long|maximum context length|context window", re.I)


def error_labels(error: object) -> frozenset[str | int]:
    """Return all labels of `error`, by which retry and fallback settings can select errors.

    These are its HTTP status as a number, the codes and types of providers, "timeout",
    "connection_error", and the names of its class and base classes.
    """
    labels: set[str | int] = set(_class_names(error))
    status = http_status(error)
    if status is not None:
        labels.add(status)
    labels.update(_codes(error))
    labels.update([_ALIASES[label] for label in labels if label in _ALIASES])
    if is_timeout(error):
        labels.add("timeout")
    if is_connection_error(error):
        labels.add("connection_error")
    if status in (400, 413) and _TOO_LONG.search(_text(error)):
        labels.add("context_length_exceeded")
    return frozenset(labels)


def http_status(error: object) -> int | None:
    """Return the HTTP status of an error or a response, or the HTTP equivalent of a gRPC status."""
    response = _get(error, "response")
    for value in (
        _get(error, "status_code"),
        _get(error, "status"),
        _get(response, "status_code"),
        _get(response, "status"),
        _get(error, "code"),
    ):
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
            return int(value)
    return _STATUS_OF_GRPC.get(_grpc_code(error))


def is_client_error(error: object) -> bool:
    """Return True for an HTTP status of 400 to 499 other than 408 and 429."""
    status = http_status(error)
    return status is not None and 400 <= status <= 499 and status not in (408, 429)


def response_header(error: object, name: str) -> str | None:
    """Return the header `name` of a response: of `error` itself, or of the response it holds."""
    for holder in (_get(error, "response"), error):
        headers = _get(holder, "headers")
        for spelled in (name, name.title()):
            try:
                value = headers.get(spelled)
            except Exception:  # noqa: S112 - whatever it is, it is no mapping of headers.
                continue
            if isinstance(value, str):
                return value
    return None


def retry_after_header(error: object) -> str | None:
    """Return the `Retry-After` of the response that caused `error`, or None.

    It is text: a number of seconds, or a date.
    """
    milliseconds = response_header(error, "retry-after-ms")
    if milliseconds is not None and re.fullmatch(r"[0-9]{1,9}", milliseconds):
        return str(int(milliseconds) / 1000)
    header = response_header(error, "retry-after")
    if header is not None:
        return header
    given = _get(error, "retry_after")
    if isinstance(given, int | float) and not isinstance(given, bool):
        if not given >= 0:  # Negative, or NaN.
            return None
        # The format of a header: no exponent.
        return f"{min(given, MAX_RETRY_AFTER_SECONDS):.3f}".removesuffix(".000")
    return given if isinstance(given, str) else None


def is_timeout(error: object) -> bool:
    """Return True for a timeout of any library."""
    if isinstance(error, TimeoutError):
        return True
    if not isinstance(error, BaseException):
        return False
    if any(_TIMEOUT_NAMES.search(name) for name in _class_names(error)):
        return True
    if (reason := _wrapped_error(error)) is not None:
        is_named = _TIMEOUT_NAMES.search(type(reason).__name__) is not None
        return is_named or isinstance(reason, TimeoutError)
    return _grpc_code(error) == "DEADLINE_EXCEEDED"


def is_stop_request(error: object) -> bool:
    """Return True if `error`, or a cause of it, is Celery's request that the task stop.

    That is `SoftTimeLimitExceeded`.
    """
    if not isinstance(error, BaseException):
        return False
    return any(not _STOP_REQUESTS.isdisjoint(_class_names(each)) for each in walk_errors(error))


def is_connection_error(error: object) -> bool:
    """Return True if `error` means that the connection failed or was lost."""
    if isinstance(error, ConnectionError):
        return True
    if not isinstance(error, BaseException):
        return False
    names = _class_names(error)
    if not _CONNECTION_NAMES.isdisjoint(names):
        return True
    if not _DRIVER_ERRORS.isdisjoint(names):
        return _is_connection_lost(error)
    if (reason := _wrapped_error(error)) is not None:
        is_named = not _CONNECTION_NAMES.isdisjoint(_class_names(reason))
        return is_named or isinstance(reason, ConnectionError)
    return _grpc_code(error) == "UNAVAILABLE"


def _wrapped_error(error: BaseException) -> BaseException | None:
    reason = _get(error, "reason")  # urllib and urllib3 wrap the error.
    return reason if isinstance(reason, BaseException) and reason is not error else None


def _is_connection_lost(error: BaseException, deepest: int = 5) -> bool:
    """Return True if a database error means a lost connection or a temporary lock.

    The driver's error is looked up in the errors of Django and SQLAlchemy that wrap it, up to
    `deepest` levels. A driver's error without a code, except of sqlite3, means a lost connection.
    """
    inner = _get(error, "orig") or error.__cause__
    if (
        deepest
        and isinstance(inner, BaseException)
        and not _DRIVER_ERRORS.isdisjoint(_class_names(inner))
    ):
        return _is_connection_lost(inner, deepest - 1)
    sqlstate = _get(error, "sqlstate") or _get(error, "pgcode")
    if isinstance(sqlstate, str):
        return bool(_LOST_CONNECTION.match(sqlstate))
    number = _get(error, "sqlite_errorcode")
    if isinstance(number, int):
        return number & 0xFF in _LOCKED_SQLITE
    number = error.args[0] if error.args else None
    if isinstance(number, int):
        return number in _LOST_MYSQL
    return type(error).__module__ != "sqlite3"


def _class_names(error: object) -> list[str]:
    ends = ("object", "BaseException")
    return [kind.__name__ for kind in type(error).__mro__ if kind.__name__ not in ends]


def _codes(error: object) -> set[str]:
    """Return the error codes by which a provider or database names the error.

    OpenAI: `code` and `type`, of the error or in its body; Anthropic: in `body["error"]`; psycopg:
    the SQLSTATE.
    """
    body = _get(error, "body")
    inner = body.get("error") if isinstance(body, dict) else None
    value = [_get(error, "code"), _get(error, "type"), _get(error, "sqlstate"), _grpc_code(error)]
    for each in (body, inner):
        if isinstance(each, dict):
            value += [each.get("code"), each.get("type")]
    return {
        label for label in value if isinstance(label, str) and 0 < len(label) <= MAX_LABEL_LENGTH
    }


def _grpc_code(error: object) -> str:
    """Return the name of the status of a gRPC error, whose `code` is a method; otherwise ""."""
    code = _get(error, "code")
    if not callable(code) or not isinstance(error, BaseException):
        return ""
    try:
        name = _get(code(), "name")
    except Exception:
        return ""
    return name if isinstance(name, str) else ""


def _get(thing: object, name: str) -> Any:
    """Return an attribute; None if it is missing or reading it raises."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def _text(error: object) -> str:
    try:
        return str(error)[:2000]
    except Exception:
        return ""


def describe_error(error: BaseException) -> str:
    """Return the class name and the text of `error` on one line, of at most 200 characters."""
    text = _text(error)
    return escape(f"{type(error).__name__}: {text}" if text else type(error).__name__, 200)


def status_phrase(status: int) -> str:
    """Return an HTTP status with its phrase, such as "HTTP 503 Service Unavailable"."""
    from http import HTTPStatus  # HTTP libraries have imported it.

    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"
