"""The decisions of an HTTP transport about one request, for sync and async ones."""

import math
import time
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from switchgear.failures.error_labels import phrase_of
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
from switchgear.policies.documents import matcher

KEY_HEADER = "Idempotency-Key"
KEYED_METHODS = frozenset({"POST", "PATCH"})
REPEATABLE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})
"""To send them twice is to send them once."""
NOTHING_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
PARTS = ("connect", "read", "write", "pool")
MAX_DRAINED = 65_536
"""Bytes of an answer that nobody wants, read so that its connection can be used again."""
DRAINED_SECONDS = 0.05
"""For so long, and no longer: a new connection costs less than a wait."""
MIN_SECONDS = 0.001

_OWN_KEY = "switchgear.idempotency_key"
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
        self._admitted = None if breaker is None else (breaker, *breaker._start())

    def failed(self, error: BaseException) -> None:
        """There was no answer."""
        if self._admitted is not None:
            breaker, permit, began = self._admitted
            breaker.settle(permit, error, breaker._elapsed(began))

    def answered(self, status: int) -> None:
        """The head of an answer came."""
        if self._admitted is None:
            return
        breaker, permit, began = self._admitted
        seconds = breaker._elapsed(began)
        if status >= 500 or status in (408, 429):
            breaker.fail(permit, StatusFailure(status), seconds)
        else:
            breaker.succeed(permit, seconds)


@dataclass(frozen=True, slots=True)
class _OwnKey:
    """A key that nobody but us gave, to the request with the body `stream`."""

    key: str
    stream: object


def prepare(request: httpx.Request) -> bool:
    """Find the `Idempotency-Key` for a POST or PATCH without one, the same in all attempts; whether
    it may be sent again whatever became of it.

    That is so for methods that can be repeated, and where the caller gave the key: a server that
    keeps to keys is known only to who asks for it. And the body must be there to be sent again.
    Our own key stays with a request that passes here more than once, as it is redirected, needs
    credentials, or is sent anew by the caller; it is never taken for one of the caller's.
    """
    is_callers = KEY_HEADER in request.headers or explicit_key() is not None
    is_replayable = isinstance(request.stream, httpx.ByteStream)
    if request.method in KEYED_METHODS and not is_callers and _own_key(request) is None:
        body = request.content if is_replayable else b""
        url = str(request.url).encode()
        own = _OwnKey(request_key(request.method.encode(), url, body), request.stream)
        request.extensions = {**request.extensions, _OWN_KEY: own}
    return is_replayable and (request.method in REPEATABLE_METHODS or is_callers)


def _own_key(request: httpx.Request) -> str | None:
    own = request.extensions.get(_OWN_KEY)
    # Extensions that somebody takes for another request bring no key along.
    return own.key if isinstance(own, _OwnKey) and own.stream is request.stream else None


def dressed(request: httpx.Request, http: HttpTimeouts | None) -> httpx.Request:
    """A copy for one try, with what that may take, and what the other side should know. The
    request itself stays as it is: it may pass here again, where other times hold."""
    headers = request.headers.copy()
    for name in (ATTEMPT_HEADER, LAST_ATTEMPT_HEADER):
        headers.pop(name, None)  # Headers of another request, forwarded by the caller.
    headers.update(outgoing(None if retried_calls.find_active() is None else _failure_of(request)))
    if request.method in KEYED_METHODS and KEY_HEADER not in headers:
        key = explicit_key() or _own_key(request)
        if key is not None:
            headers[KEY_HEADER] = key
    copy = httpx.Request(
        request.method,
        request.url,
        headers=headers,
        stream=request.stream,
        extensions={**request.extensions, "timeout": timeouts_of(request, http)},
    )
    if isinstance(request.stream, httpx.ByteStream):
        copy.read()  # As httpx does, so that its `content` is there for who looks.
    return copy


def _failure_of(request: httpx.Request) -> httpx.HTTPStatusError:
    """Return the error that callers usually raise for a failed request."""
    response = httpx.Response(503, request=request)
    return httpx.HTTPStatusError(phrase_of(503), request=request, response=response)


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
    most = remaining_seconds()
    found: dict[str, float | None] = {}
    for part in PARTS:
        seconds = asked.get(part)
        if http is not None and not is_callers:
            seconds = getattr(http, part)
        if most is not None:
            seconds = max(most if seconds is None else min(seconds, most), MIN_SECONDS)
        found[part] = seconds
    return found


class Patience:
    """How long the waits for one answer's body may take, all together: what `limit` leaves when its
    head has come. What the reader does in between is no fault of the answer's.

    Before each wait :meth:`begin`, and after it :meth:`is_over`.
    """

    def __init__(self, limit: TimeLimit | None) -> None:
        self._clock = time.monotonic if limit is None else limit.clock
        self._seconds = math.inf if limit is None else limit.until - limit.clock()
        self._began = 0.0

    def shorten(self, seconds: float) -> None:
        """No longer than this, from now on."""
        self._seconds = min(self._seconds, seconds)

    def begin(self) -> None:
        self._began = self._clock()

    def is_over(self) -> bool:
        self._seconds -= self._clock() - self._began
        return self._seconds <= 0


def is_worth_draining(response: httpx.Response) -> bool:
    """Whether the rest of an answer is there to be read, is short, and says so."""
    length = response.headers.get("content-length", "")
    is_short = length.isascii() and length.isdigit() and len(length) < 9
    return is_short and int(length) <= MAX_DRAINED and not response.is_stream_consumed


def hurry(sent: httpx.Request) -> None:
    """Let no read of the answer to `sent`, a :func:`dressed` one, wait longer than draining may:
    whoever reads its body looks there for the time first when that begins."""
    timeout: MutableMapping[str, float | None] = sent.extensions["timeout"]
    asked = timeout["read"]
    timeout["read"] = DRAINED_SECONDS if asked is None else min(asked, DRAINED_SECONDS)
