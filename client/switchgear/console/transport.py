"""HTTP requests to the console, by the standard library.

Time and memory of every answer are limited, even if it arrives a byte at a time, never ends, or
expands without bounds when decompressed. Redirects are not followed. gzip is the only content
coding, and not used on streams. Every error is a :class:`RequestFailed`, whose text holds no
secret.
"""

import contextlib
import http.client
import ssl
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from switchgear.clock import ConsoleClock, parse_date, parse_retry_after_header
from switchgear.console.address import Address
from switchgear.console.errors import RequestFailed, describe_error
from switchgear.console.limited_socket import LimitedSocket, dial
from switchgear.evaluation.snapshot import MAX_BYTES

USER_AGENT = "switchgear-python"
PIECE_BYTES = 2**16
GZIP_WINDOW = 31  # zlib's largest window, with gzip's header and checksum around it
MAX_HEADER_BYTES = 2**18
"""Allowance for everything but the body of an answer."""
MAX_CLOCK_SAMPLE_SECONDS = 5.0
"""Slower answers are not used as clock samples: their delay is too uncertain."""


@dataclass(frozen=True)
class Response:
    """An HTTP answer. Header names are lower case.

    `sent_at` and `answered_at` are seconds on the monotonic clock: before the request was sent, and
    when the headers had arrived.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    sent_at: float
    answered_at: float

    def expect(self, *statuses: int) -> Self:
        """Return this answer if it has one of these statuses; else raise :class:`RequestFailed`."""
        if self.status in statuses:
            return self
        raise _status_error(self.status, self.headers)


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    headers: Mapping[str, str] | None
    body: bytes | None = None
    max_bytes: int = PIECE_BYTES
    accepts_gzip: bool = False


@dataclass(eq=False)
class Connection:
    """A connection to the console, opened when needed and reused between requests.

    Not thread-safe, except for :meth:`abort`. `token` is sent as `Authorization` and appears
    nowhere else.
    """

    address: Address
    token: str = field(default="", repr=False)
    agent: str = USER_AGENT
    _socket: LimitedSocket | None = field(default=None, init=False, repr=False)
    _aborted: bool = field(default=False, init=False, repr=False)
    _tls: ssl.SSLContext | None = field(default=None, init=False, repr=False)

    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        seconds: float = 10.0,
        max_bytes: int = MAX_BYTES,
    ) -> Response:
        """Send a request and return the whole answer within `seconds`, whatever its status.

        `path` begins with a slash and includes the query. A GET is repeated once, within the same
        time, if a reused connection turns out to be closed. Raise :class:`RequestFailed`.
        """
        until = time.monotonic() + seconds
        request = _Request(method, path, headers, body, max_bytes, accepts_gzip=True)
        was_reused = self._is_reusable()
        try:
            return self._exchange(request, until)
        except RequestFailed as failed:
            was_closed = was_reused and isinstance(failed.__cause__, ConnectionError)
            if not was_closed or method != "GET" or self._aborted:
                raise
        return self._exchange(request, until)

    def stream(
        self, path: str, headers: Mapping[str, str] | None = None, seconds: float = 10.0
    ) -> "Stream":
        """Open a streamed answer, whose headers must arrive within `seconds`.

        The stream owns the connection until it is closed. Raise :class:`RequestFailed`, also for
        any status but 200.
        """
        sent_at = time.monotonic()
        with _translate_errors(self):
            response = self._send(_Request("GET", path, headers), sent_at + seconds)
            stream = Stream(self, response, _lower_names(response), sent_at, time.monotonic())
            if response.status != 200:
                raise _status_error(response.status, stream.headers)
            return stream

    def abort(self) -> None:
        """Abort the running request, and all later ones. Thread-safe."""
        self._aborted = True
        if (connected := self._socket) is not None:
            connected.abort()

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        connected, self._socket = self._socket, None
        if connected is not None:
            connected.close_socket()

    def close_in_child(self) -> None:
        """Close the parent's connection in a forked child without notifying the server."""
        self._aborted = True
        if self._socket is not None:
            self._socket.close_socket(in_child=True)

    def _exchange(self, request: _Request, until: float) -> Response:
        sent_at = time.monotonic()
        with _translate_errors(self):
            response = self._send(request, until)
            answered_at = time.monotonic()
            content = _read_body(response, request.max_bytes)
            if response.will_close:
                self.close()
            return Response(response.status, _lower_names(response), content, sent_at, answered_at)

    def _send(self, request: _Request, until: float) -> http.client.HTTPResponse:
        connected = self._connect(until)
        connected.set_limits(until, request.max_bytes + MAX_HEADER_BYTES)
        http_connection = http.client.HTTPConnection(self.address.host, self.address.port)
        http_connection.sock = connected  # Has the methods of a socket that http.client uses.
        target = self.address.base + request.path
        if connected.by_proxy:
            target = f"{self.address.scheme}://{self.address.authority}{target}"
        http_connection.putrequest(
            request.method, target, skip_host=True, skip_accept_encoding=True
        )
        headers = {
            "Host": self.address.authority,
            "User-Agent": self.agent,
            "Authorization": f"Bearer {self.token}" if self.token else "",
            "Proxy-Authorization": connected.proxy_authorization if connected.by_proxy else "",
            "Accept-Encoding": "gzip" if request.accepts_gzip else "identity",
            **(request.headers or {}),
        }
        for name, value in headers.items():
            if value:
                http_connection.putheader(name, value.encode())
        if request.body is not None:
            http_connection.putheader("Content-Length", str(len(request.body)))
        http_connection.endheaders(request.body)
        return http_connection.getresponse()

    def _connect(self, until: float) -> LimitedSocket:
        if self._socket is not None and not self._is_reusable():
            self.close()
        if self._socket is None:
            if self.address.scheme == "https" and self._tls is None:
                self._tls = ssl.create_default_context()
            self._socket = connected = LimitedSocket()
            if self._aborted:
                connected.abort()
            dial(connected, self.address, self._tls, until)
        if self._aborted:
            raise ConnectionAbortedError
        return self._socket

    def _is_reusable(self) -> bool:
        return self._socket is not None and self._socket.is_idle()


@dataclass(eq=False)
class Stream:
    """A streamed answer. Fields are as in :class:`Response`."""

    _connection: Connection
    _response: http.client.HTTPResponse
    headers: Mapping[str, str]
    sent_at: float
    answered_at: float

    def read(self, seconds: float) -> bytes:
        """Return the available bytes, 1 byte to 64 KiB; wait at most `seconds` for the first.

        Return empty bytes at the end of the stream. Raise :class:`RequestFailed`.
        """
        with _translate_errors(self._connection):
            connected = self._connection._socket
            if connected is None:
                return b""
            connected.set_limits(time.monotonic() + seconds, PIECE_BYTES + MAX_HEADER_BYTES)
            return self._response.read1(PIECE_BYTES)

    def has_more(self) -> bool:
        """Return True if :meth:`read` would not wait. Raise :class:`RequestFailed`."""
        with _translate_errors(self._connection):
            connected = self._connection._socket
            return connected is not None and connected.has_more()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self.close()


class _translate_errors(contextlib.AbstractContextManager[None]):
    """A context manager that closes the connection on error, and raises `RequestFailed`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is None:
            return
        self._connection.close()
        if self._connection._aborted and isinstance(error, Exception):
            raise RequestFailed("the connection was closed by this client") from None
        if isinstance(error, ConnectionError):
            raise RequestFailed(describe_error(error)) from error
        if isinstance(error, OSError | http.client.HTTPException | ValueError | zlib.error):
            # Such an error may quote the request, including the token.
            raise RequestFailed(describe_error(error)) from None


def _read_body(response: http.client.HTTPResponse, max_bytes: int) -> bytes:
    """Return the decompressed body.

    Raise :class:`RequestFailed` if the body is too large (compressed or not), too short, damaged,
    or in a coding that was not requested.
    """
    declared = response.length
    if declared is not None and declared > max_bytes:
        raise RequestFailed(f"the response has more than {max_bytes} bytes", status=response.status)
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip"):
        raise RequestFailed("unexpected compressed response", status=response.status)
    gunzip = zlib.decompressobj(GZIP_WINDOW) if coding == "gzip" else None
    pieces, received, length = [], 0, 0
    while piece := response.read(PIECE_BYTES):
        received += len(piece)
        if gunzip is not None:
            # One byte above the limit is enough to refuse; a gzip bomb is never expanded further.
            piece = gunzip.decompress(piece, max_bytes - length + 1)
        pieces.append(piece)
        length += len(piece)
        if max(received, length) > max_bytes:
            raise RequestFailed(
                f"the response has more than {max_bytes} bytes", status=response.status
            )
    is_cut_off = gunzip is not None and received and not gunzip.eof
    if is_cut_off or (declared is not None and received < declared):
        raise RequestFailed("the response is incomplete", status=response.status)
    if gunzip is not None and gunzip.unused_data:
        raise RequestFailed("damaged compressed response", status=response.status)
    return b"".join(pieces)


def update_clock(clock: ConsoleClock, answer: Response | Stream) -> None:
    """Pass the time in `answer` to `clock`, unless the answer took so long that it is imprecise."""
    elapsed = answer.answered_at - answer.sent_at
    if elapsed <= MAX_CLOCK_SAMPLE_SECONDS:
        clock.update(answer.headers, elapsed, time.monotonic() - answer.answered_at)


def _status_error(status: int, headers: Mapping[str, str]) -> RequestFailed:
    retry_after, sent_at = headers.get("retry-after"), parse_date(headers.get("date"))
    if (
        sent_at is not None
        and (seconds := parse_retry_after_header(retry_after, sent_at)) is not None
    ):
        # Both dates are by the same clock, so it does not matter whether that is right.
        retry_after = f"{seconds:.0f}"
    return RequestFailed(f"status {status}", retry_after, status)


def _lower_names(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in response.headers.items()}
