"""What an HTTP client's transport decides about one request, whether it waits or awaits."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from switchgear.failing.words import phrase_of
from switchgear.guards import Guard
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.deadline import Deadline
from switchgear.patterns.idempotency import given_key, key_of_request
from switchgear.patterns.limits import left
from switchgear.patterns.parameters import HttpTimeouts
from switchgear.patterns.retry import Retry
from switchgear.policies.documents import matcher

KEY_HEADER = "Idempotency-Key"
KEYED_METHODS = frozenset({"POST", "PATCH"})
REPEATABLE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
"""To send them twice is to send them once."""
NOTHING_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
PARTS = ("connect", "read", "write", "pool")
MOST_DRAINED = 65_536
"""Bytes of an answer that nobody wants, read so that its connection can be used again."""
LEAST_SECONDS = 0.001

_LIBRARYS_OWN = httpx.Timeout(5.0).as_dict()


class Parts(Protocol):
    """What a transport puts around requests: a `Policy`, or :class:`Patterns`."""

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
        """Seconds for one try of this path."""
        ...


@dataclass(frozen=True, kw_only=True)
class Patterns:
    """The parts of a policy, by hand. `routes` are patterns of paths with the seconds that one try
    of them may take, the first that fits counts: `*` is any part between slashes, `**` any rest;
    `timeout_seconds` is for all others."""

    guard: Guard | None = None
    deadline: Deadline | None = None
    retry: Retry | None = None
    breaker: Breaker | None = None
    bulkhead: Bulkhead | None = None
    http: HttpTimeouts | None = None
    timeout_seconds: float | None = None
    routes: Mapping[str, float] = field(default_factory=dict)

    def route_timeout(self, path: str) -> float | None:
        """Seconds for one try of this path."""
        fit = (each for pattern, each in self.routes.items() if matcher(pattern).fullmatch(path))
        return next(fit, self.timeout_seconds)


class StatusFailure(Exception):
    """An answer whose status a breaker counts as a failure."""

    def __init__(self, status_code: int) -> None:
        super().__init__(status_code)
        self.status_code = status_code

    def __str__(self) -> str:
        return phrase_of(self.status_code)


class Admission:
    """Leave of a breaker, if there is one, to send a request. Raises what it raises."""

    def __init__(self, breaker: Breaker | None) -> None:
        self._admitted = None if breaker is None else (breaker, breaker.admit())
        self._began = time.monotonic()

    def failed(self, error: BaseException) -> None:
        """There was no answer."""
        if self._admitted is not None:
            breaker, permit = self._admitted
            breaker.settle(permit, error, time.monotonic() - self._began)

    def answered(self, status: int) -> None:
        """The head of an answer came."""
        if self._admitted is None:
            return
        breaker, permit = self._admitted
        seconds = time.monotonic() - self._began
        if is_failure(status):
            breaker.fail(permit, StatusFailure(status), seconds)
        else:
            breaker.succeed(permit, seconds)


def is_failure(status: int) -> bool:
    """Whether a breaker counts it: the server's errors, 408 and 429."""
    return status >= 500 or status in (408, 429)


def prepare(request: httpx.Request) -> bool:
    """Give a POST or PATCH without one an `Idempotency-Key`, the same in all attempts; whether it
    may be sent again whatever became of it.

    That is so for methods that can be repeated, and where the caller gave the key: a server that
    keeps to keys is known only to who asks for it. And the body must be there to be sent again.
    """
    is_callers = KEY_HEADER in request.headers or given_key() is not None
    is_replayable = isinstance(request.stream, httpx.ByteStream)
    if request.method in KEYED_METHODS and KEY_HEADER not in request.headers:
        body = request.content if is_replayable else b""
        url = str(request.url).encode()
        request.headers[KEY_HEADER] = key_of_request(request.method.encode(), url, body)
    return is_replayable and (request.method in REPEATABLE_METHODS or is_callers)


def may_repeat(is_repeatable: bool, error: Exception) -> bool:
    """Whether the request may be sent again after `error`."""
    return is_repeatable or isinstance(error, NOTHING_SENT)


def timeouts_of(request: httpx.Request, http: HttpTimeouts | None) -> dict[str, float | None]:
    """Seconds for each part of one try, none longer than what is left.

    What the request asks for itself wins over `http`, but for the five seconds that the library
    gives to those who ask for nothing.
    """
    asked = request.extensions.get("timeout") or {}
    is_callers = bool(asked) and asked != _LIBRARYS_OWN
    most = left()
    found: dict[str, float | None] = {}
    for part in PARTS:
        seconds = asked.get(part)
        if http is not None and not is_callers:
            seconds = getattr(http, part)
        if most is not None:
            seconds = max(most if seconds is None else min(seconds, most), LEAST_SECONDS)
        found[part] = seconds
    return found


def is_worth_draining(response: httpx.Response) -> bool:
    """Whether the rest of an answer is short, and says so."""
    length = response.headers.get("content-length", "")
    return length.isascii() and length.isdigit() and len(length) < 9 and int(length) <= MOST_DRAINED
