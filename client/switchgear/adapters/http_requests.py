"""Preparation and evaluation of one HTTP request, shared by the sync and the async transport."""

import math
import time
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from switchgear.failures.error_labels import status_phrase
from switchgear.guards import Guard
from switchgear.patterns import retried_calls
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.idempotency import explicit_key, request_key
from switchgear.patterns.parameters import HttpTimeouts
from switchgear.patterns.propagation import ATTEMPT_HEADER, LAST_ATTEMPT_HEADER, outgoing
from switchgear.patterns.retry import Retry
from switchgear.patterns.time_limits import TimeLimit, remaining_seconds
from switchgear.policies.documents import path_pattern

KEY_HEADER = "Idempotency-Key"
KEYED_METHODS = frozenset({"POST", "PATCH"})
REPEATABLE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
"""Idempotent methods."""
UNSENT_ERRORS = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
PARTS = ("connect", "read", "write", "pool")
MAX_DRAIN_BYTES = 65_536
"""Maximum size of a discarded response that is read so that its connection can be reused."""
MAX_DRAIN_SECONDS = 0.05
"""Maximum time for reading a discarded response. Opening a new connection is faster than a longer
read."""
MIN_SECONDS = 0.001

_KEY_EXTENSION = "switchgear.idempotency_key"
_DEFAULT_TIMEOUTS = httpx.Timeout(5.0).as_dict()


class TransportPatterns(Protocol):
    """The timeout, retry, breaker … of a request; a :class:`Policy`, or :class:`Patterns`."""

    @property
    def guard(self) -> Guard | None: ...
    @property
    def deadline(self) -> Deadline | None: ...
    @property
    def retry(self) -> Retry | None: ...
    @property
    def breaker(self) -> Breaker | None: ...
    @property
    def bulkhead(self) -> Bulkhead | None: ...
    @property
    def http(self) -> HttpTimeouts | None: ...
    def route_timeout(self, path: str) -> float | None:
        """Return the timeout in seconds of one attempt for a request to `path`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Patterns:
    """The patterns of a transport, given individually.

    `routes` are pairs of a path pattern and the timeout of one attempt in seconds; the first
    matching pair applies. In a pattern, `*` matches one part between slashes, `**` the rest of the
    path. `timeout_seconds` applies to all other paths.
    """

    guard: Guard | None = None
    deadline: Deadline | None = None
    retry: Retry | None = None
    breaker: Breaker | None = None
    bulkhead: Bulkhead | None = None
    http: HttpTimeouts | None = None
    timeout_seconds: float | None = None
    routes: Mapping[str, float] = field(default_factory=dict)

    def route_timeout(self, path: str) -> float | None:
        fit = (
            each for pattern, each in self.routes.items() if path_pattern(pattern).fullmatch(path)
        )
        return next(fit, self.timeout_seconds)


class StatusFailure(Exception):
    """The error that a breaker records for a response whose status counts as a failure."""

    def __init__(self, status_code: int) -> None:
        super().__init__(status_code)
        self.status_code = status_code

    def __str__(self) -> str:
        return status_phrase(self.status_code)


class BreakerPermit:
    """A permit of `breaker` to send one request, to which the outcome must be recorded.

    The constructor raises the breaker's error if it rejects the request. Without a breaker every
    request is permitted.
    """

    def __init__(self, breaker: Breaker | None) -> None:
        self._admitted = None if breaker is None else (breaker, *breaker._start())

    def record_error(self, error: BaseException) -> None:
        """Record that the request failed without a response."""
        if self._admitted is not None:
            breaker, permit, began = self._admitted
            breaker.settle(permit, error, breaker._elapsed_seconds(began))

    def record_status(self, status: int) -> None:
        if self._admitted is None:
            return
        breaker, permit, began = self._admitted
        seconds = breaker._elapsed_seconds(began)
        if status >= 500 or status in (408, 429):
            breaker.fail(permit, StatusFailure(status), seconds)
        else:
            breaker.succeed(permit, seconds)


@dataclass(frozen=True, slots=True)
class _GeneratedKey:
    key: str
    stream: object


def prepare_request(request: httpx.Request) -> bool:
    """Give the request an idempotency key if it needs one; return True if it may be repeated.

    A POST or PATCH without `Idempotency-Key` gets a generated key, which is the same in all
    attempts, and when the request is sent again after a redirect or authentication.

    A request may be repeated if its body can be sent again and either its method is idempotent or
    the caller set the key. A generated key is not enough, since only the caller knows that the
    server honors keys.
    """
    is_callers = KEY_HEADER in request.headers or explicit_key() is not None
    is_replayable = isinstance(request.stream, httpx.ByteStream)
    if request.method in KEYED_METHODS and not is_callers and _generated_key(request) is None:
        body = request.content if is_replayable else b""
        url = str(request.url).encode()
        own = _GeneratedKey(request_key(request.method.encode(), url, body), request.stream)
        request.extensions = {**request.extensions, _KEY_EXTENSION: own}
    return is_replayable and (request.method in REPEATABLE_METHODS or is_callers)


def _generated_key(request: httpx.Request) -> str | None:
    own = request.extensions.get(_KEY_EXTENSION)
    # A caller may copy the extensions to another request, to which the key does not belong.
    return own.key if isinstance(own, _GeneratedKey) and own.stream is request.stream else None


def make_attempt(request: httpx.Request, http: HttpTimeouts | None) -> httpx.Request:
    """Return a copy of the request for one attempt, with its timeouts and headers.

    The request itself is not changed: it may be sent again, under other limits.
    """
    headers = request.headers.copy()
    for name in (ATTEMPT_HEADER, LAST_ATTEMPT_HEADER):
        headers.pop(name, None)  # Headers of another request, forwarded by the caller.
    error = None if retried_calls.find_active() is None else _make_status_error(request)
    headers.update(outgoing(error))
    if request.method in KEYED_METHODS and KEY_HEADER not in headers:
        key = explicit_key() or _generated_key(request)
        if key is not None:
            headers[KEY_HEADER] = key
    copy = httpx.Request(
        request.method,
        request.url,
        headers=headers,
        stream=request.stream,
        extensions={**request.extensions, "timeout": make_timeouts(request, http)},
    )
    if isinstance(request.stream, httpx.ByteStream):
        copy.read()  # As httpx does, so that hooks can read its `content`.
    return copy


def _make_status_error(request: httpx.Request) -> httpx.HTTPStatusError:
    """Return the error that a response with status 503 to this request would raise.

    :func:`outgoing` asks with it which of the enclosing retries would retry the request.
    """
    response = httpx.Response(503, request=request)
    return httpx.HTTPStatusError(status_phrase(503), request=request, response=response)


def may_repeat(is_repeatable: bool, error: Exception) -> bool:
    """Return True if the request may be sent again after `error`.

    A request that is not repeatable may be sent again only if `error` shows that it was not sent.
    """
    return is_repeatable or isinstance(error, UNSENT_ERRORS)


def make_timeouts(request: httpx.Request, http: HttpTimeouts | None) -> dict[str, float | None]:
    """Return the seconds for each part of one attempt, such as `connect`, within the time left.

    The request's own timeouts win over `http`, those of the policy, unless they are httpx's
    defaults.
    """
    requested = request.extensions.get("timeout") or {}
    is_callers = bool(requested) and requested != _DEFAULT_TIMEOUTS
    left = remaining_seconds()
    found: dict[str, float | None] = {}
    for part in PARTS:
        seconds = requested.get(part)
        if http is not None and not is_callers:
            seconds = getattr(http, part)
        if left is not None:
            seconds = max(left if seconds is None else min(seconds, left), MIN_SECONDS)
        found[part] = seconds
    return found


class BodyTimer:
    """A timer for the reads of a response body, which may take no longer than `limit` leaves.

    Only the time spent in reads counts. Call :meth:`begin` before each read and :meth:`is_over`
    after it.
    """

    def __init__(self, limit: TimeLimit | None) -> None:
        self._clock = time.monotonic if limit is None else limit.clock
        self._seconds = math.inf if limit is None else limit.until - limit.clock()
        self._began = 0.0

    def shorten(self, seconds: float) -> None:
        """Reduce the time left to at most `seconds`."""
        self._seconds = min(self._seconds, seconds)

    def begin(self) -> None:
        self._began = self._clock()

    def is_over(self) -> bool:
        self._seconds -= self._clock() - self._began
        return self._seconds <= 0


def should_drain(response: httpx.Response) -> bool:
    """Return True if the rest of the body is cheap to read: it is unread and known to be short."""
    length = response.headers.get("content-length", "")
    is_short = length.isascii() and length.isdigit() and len(length) < 9
    return is_short and int(length) <= MAX_DRAIN_BYTES and not response.is_stream_consumed


def limit_drain(sent: httpx.Request) -> None:
    """Limit each read of an unread body's rest to `MAX_DRAIN_SECONDS`.

    This sets the read timeout of the request `sent`, which httpx looks up at each read.
    """
    timeout: MutableMapping[str, float | None] = sent.extensions["timeout"]
    requested = timeout["read"]
    timeout["read"] = MAX_DRAIN_SECONDS if requested is None else min(requested, MAX_DRAIN_SECONDS)
