"""What an error says of itself, in words: its HTTP status, its codes, whether it is a timeout.

Errors of httpx, requests, urllib3, aiohttp, openai, anthropic, redis, psycopg and grpc are known by
their names and attributes, so none of them is imported. Nothing here raises, whatever it is given;
a response can be asked just as an error can.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from switchgear.journal import escape
from switchgear.refusals import walk_errors

MAX_WORD_LENGTH = 100
MAX_WORDS = 50
MAX_SECONDS = 999_999_999.0

HOPELESS: frozenset[str | int] = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""To try again is no use, although the status says otherwise."""

_ALIASES: Mapping[str | int, str] = MappingProxyType(
    {
        "rate_limit_error": "rate_limit_exceeded",
        "RateLimitError": "rate_limit_exceeded",
        "overloaded_error": "model_overloaded",
        529: "model_overloaded",
        "authentication_error": "invalid_api_key",
        "AuthenticationError": "invalid_api_key",
        "content_filter": "content_policy_violation",
        "content_policy": "content_policy_violation",
    }
)
"""What providers call differently."""

_STATUS_OF_GRPC: Mapping[str, int] = MappingProxyType(
    {
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
)

_TIMEOUT_NAMES = re.compile(
    r"(Timeout|TimeoutError|TimeoutException|TimedOut|DeadlineExceeded|TimeLimitExceeded)$"
)
_TOLD_TO_STOP = frozenset({"SoftTimeLimitExceeded"})  # celery
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
"""SQLSTATE: the connection failed, or the server is going down or coming up."""
_LOCKED_SQLITE = frozenset({5, 6})
"""SQLITE_BUSY and SQLITE_LOCKED, without what extends them."""
_LOST_MYSQL = frozenset({1040, 1053, 2002, 2003, 2006, 2013, 2055})
"""Too many connections, shutting down, no server, gone away, lost."""
_TOO_LONG = re.compile(r"prompt is too long|maximum context length|context window", re.I)


def words_of(error: object) -> frozenset[str | int]:
    """All that parameters may name `error` by: its HTTP status as a number, codes and types that a
    provider gives, "timeout", "connection_error", and the names of its class and what that derives
    from."""
    words: set[str | int] = set(_names(error))
    status = status_of(error)
    if status is not None:
        words.add(status)
    words.update(_codes(error))
    words.update([_ALIASES[word] for word in words if word in _ALIASES])
    if is_timeout(error):
        words.add("timeout")
    if is_connection_error(error):
        words.add("connection_error")
    if status in (400, 413) and _TOO_LONG.search(_text(error)):
        words.add("context_length_exceeded")
    return frozenset(words)


def status_of(error: object) -> int | None:
    """The HTTP status of an error or a response, or what a gRPC status corresponds to."""
    response = _get(error, "response")
    for found in (
        _get(error, "status_code"),
        _get(error, "status"),
        _get(response, "status_code"),
        _get(response, "status"),
        _get(error, "code"),
    ):
        if isinstance(found, int) and not isinstance(found, bool) and 100 <= found <= 599:
            return int(found)
    return _STATUS_OF_GRPC.get(_grpc_code(error))


def is_client_error(error: object) -> bool:
    """Return True for an HTTP status of 400 to 499 other than 408 and 429: the callee has answered,
    and the request was at fault."""
    status = status_of(error)
    return status is not None and 400 <= status <= 499 and status not in (408, 429)


def header_of(error: object, name: str) -> str | None:
    """A header of the answer that `error` is about, or of `error` if it is an answer."""
    for holder in (_get(error, "response"), error):
        headers = _get(holder, "headers")
        for spelled in (name, name.title()):
            try:
                found = headers.get(spelled)
            except Exception:  # noqa: S112 - whatever it is, it is no mapping of headers.
                continue
            if isinstance(found, str):
                return found
    return None


def retry_after_of(error: object) -> str | None:
    """What `Retry-After` said, unread: seconds or a date. None if it said nothing."""
    millis = header_of(error, "retry-after-ms")
    if millis is not None and re.fullmatch(r"[0-9]{1,9}", millis):
        return str(int(millis) / 1000)
    told = header_of(error, "retry-after")
    if told is not None:
        return told
    given = _get(error, "retry_after")
    if isinstance(given, int | float) and not isinstance(given, bool):
        return _seconds_said(given)
    return given if isinstance(given, str) else None


def _seconds_said(seconds: float) -> str | None:
    """As a header says them: without an exponent. What is endless is as long as one can say."""
    if not seconds >= 0:  # Nor is it, if it is no number at all.
        return None
    return f"{min(seconds, MAX_SECONDS):.3f}".removesuffix(".000")


def is_timeout(error: object) -> bool:
    """Whether somebody waited too long."""
    if isinstance(error, TimeoutError):
        return True
    if not isinstance(error, BaseException):
        return False
    if any(_TIMEOUT_NAMES.search(name) for name in _names(error)):
        return True
    reason = _get(error, "reason")  # urllib's and urllib3's say it only inside.
    if isinstance(reason, BaseException) and reason is not error:
        return isinstance(reason, TimeoutError) or bool(
            _TIMEOUT_NAMES.search(type(reason).__name__)
        )
    return _grpc_code(error) == "DEADLINE_EXCEEDED"


def is_told_to_stop(error: object) -> bool:
    """Whether it says, or was raised from what says, that whatever runs is to end now: neither to
    be answered for nor to be tried again."""
    if not isinstance(error, BaseException):
        return False
    return any(not _TOLD_TO_STOP.isdisjoint(_names(each)) for each in walk_errors(error))


def is_connection_error(error: object) -> bool:
    """Whether there was no connection, or it was lost."""
    if isinstance(error, ConnectionError):
        return True
    if not isinstance(error, BaseException):
        return False
    names = _names(error)
    if not _CONNECTION_NAMES.isdisjoint(names):
        return True
    if not _DRIVER_ERRORS.isdisjoint(names):
        return _is_lost(error)
    reason = _get(error, "reason")
    if isinstance(reason, BaseException) and reason is not error:
        return isinstance(reason, ConnectionError) or not _CONNECTION_NAMES.isdisjoint(
            _names(reason)
        )
    return _grpc_code(error) == "UNAVAILABLE"


def _is_lost(error: BaseException, deepest: int = 5) -> bool:
    """Of an error of a database: whether it is the connection, or a lock that passes. Django and
    SQLAlchemy wrap the driver's; one that says nothing has had no server to say it."""
    inner = _get(error, "orig") or error.__cause__
    if (
        deepest
        and isinstance(inner, BaseException)
        and not _DRIVER_ERRORS.isdisjoint(_names(inner))
    ):
        return _is_lost(inner, deepest - 1)
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


def _names(error: object) -> list[str]:
    ends = ("object", "BaseException")
    return [kind.__name__ for kind in type(error).__mro__ if kind.__name__ not in ends]


def _codes(error: object) -> set[str]:
    """Of OpenAI: `code` and `type`, of the error or in its body; of Anthropic: in `body["error"]`;
    of psycopg: the SQLSTATE."""
    body = _get(error, "body")
    inner = body.get("error") if isinstance(body, dict) else None
    found = [_get(error, "code"), _get(error, "type"), _get(error, "sqlstate"), _grpc_code(error)]
    for each in (body, inner):
        if isinstance(each, dict):
            found += [each.get("code"), each.get("type")]
    return {word for word in found if isinstance(word, str) and 0 < len(word) <= MAX_WORD_LENGTH}


def _grpc_code(error: object) -> str:
    """The name of the status of a gRPC error, whose `code` is a function; "" for others."""
    code = _get(error, "code")
    if not callable(code) or not isinstance(error, BaseException):
        return ""
    try:
        name = _get(code(), "name")
    except Exception:
        return ""
    return name if isinstance(name, str) else ""


def _get(thing: object, name: str) -> Any:
    """An attribute, or None: some raise when they are asked too early."""
    try:
        return getattr(thing, name, None)
    except Exception:
        return None


def _text(error: object) -> str:
    try:
        return str(error)[:2000]
    except Exception:
        return ""


def said_by(error: BaseException) -> str:
    """Its class and what it says, shortened to 200 characters and on one line: what is kept of
    errors of others."""
    text = _text(error)
    return escape(f"{type(error).__name__}: {text}" if text else type(error).__name__, 200)


def phrase_of(status: int) -> str:
    """ "HTTP 503 Service Unavailable"."""
    from http import HTTPStatus  # HTTP libraries have imported it.

    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"
