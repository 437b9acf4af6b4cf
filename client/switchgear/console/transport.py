"""HTTP to the console, by the standard library.

Time and memory of every answer are limited: also if it comes a byte at a time, never ends, or
expands without bounds when decompressed. Redirects are not followed; gzip is the only content
coding, and not on streams. Every error is a :class:`Failed`, whose text holds no secret.
"""

import contextlib
import http.client
import ssl
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from switchgear.clock import read_date, read_retry_after
from switchgear.console.errors import RequestFailed, describe_error
from switchgear.console.limited_socket import LimitedSocket, dial
from switchgear.evaluation.snapshot import MAX_BYTES

__all__ = ["Address", "Connection", "Failed", "Response", "Stream"]

USER_AGENT = "switchgear-python"
PIECE_BYTES = 2**16
GZIP_WINDOW = 31  # zlib's largest window, with gzip's header and checksum around it
MAX_HEADER_BYTES = 2**18
"""As many more as an answer may have for what is not its body."""


@dataclass(frozen=True)
class Address:
    """Where the console is: `base` is the path before all of its paths, without a slash at the
    end."""

    scheme: str
    host: str
    port: int
    base: str = ""

    @classmethod
    def parse(cls, url: str) -> Self:
        """From `https://switchgear.example/base`. Raises :class:`ValueError`."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("The console's address must begin with http:// or https://.")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """For `Host`: without the port where it is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.scheme == "https" else 80)
        return host if usual else f"{host}:{self.port}"


@dataclass(frozen=True)
class Response:
    """An answer as it came. Names of `headers` are in lower case. `asked` and `answered` are
    seconds on the monotonic clock: before the request was sent, and when the headers were here."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    sent_at: float
    answered_at: float

    def expect(self, *statuses: int) -> Self:
        """This answer, if it has one of these; else raises :class:`Failed`."""
        if self.status in statuses:
            return self
        raise _status_error(self.status, self.headers)


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    headers: Mapping[str, str] | None
    body: bytes | None = None
    most_bytes: int = PIECE_BYTES
    accepts_gzip: bool = False


@dataclass(eq=False)
class Connection:
    """One connection to the console, opened when it is needed and kept between requests.

    Of one thread, but for :meth:`abort`. `token` goes into `Authorization` and nowhere else.
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
        most_bytes: int = MAX_BYTES,
    ) -> Response:
        """Ask, and have the whole answer within `seconds`, whatever its status.

        `path` begins with a slash and has its query with it. A GET is asked again, once and within
        the same time, if a connection kept from before turns out to be closed. Raises
        :class:`Failed`.
        """
        until = time.monotonic() + seconds
        request = _Request(method, path, headers, body, most_bytes, accepts_gzip=True)
        kept = self._is_reusable()
        try:
            return self._exchange(request, until)
        except RequestFailed as failed:
            was_closed = kept and isinstance(failed.__cause__, ConnectionError)
            if not was_closed or method != "GET" or self._aborted:
                raise
        return self._exchange(request, until)

    def stream(
        self, path: str, headers: Mapping[str, str] | None = None, seconds: float = 10.0
    ) -> "Stream":
        """Open an answer that goes on: its headers have to be here within `seconds`. Any status but
        200 is a :class:`Failed`. The connection is the stream's until that is closed."""
        asked = time.monotonic()
        with _translate_errors(self):
            response = self._send(_Request("GET", path, headers), asked + seconds)
            stream = Stream(self, response, _lower_names(response), asked, time.monotonic())
            if response.status != 200:
                raise _status_error(response.status, stream.headers)
            return stream

    def abort(self) -> None:
        """End whatever goes on, at once, and let nothing new begin. From any thread."""
        self._aborted = True
        if (wire := self._socket) is not None:
            wire.abort()

    def close(self) -> None:
        """Let the connection go; the next request opens another one."""
        wire, self._socket = self._socket, None
        if wire is not None:
            wire.close_socket()

    def close_in_child(self) -> None:
        """In the child of a fork: give up what is the parent's, of which nobody is told."""
        self._aborted = True
        if self._socket is not None:
            self._socket.close_in_child()

    def _exchange(self, request: _Request, until: float) -> Response:
        asked = time.monotonic()
        with _translate_errors(self):
            response = self._send(request, until)
            answered = time.monotonic()
            content = _read_body(response, request.most_bytes)
            if response.will_close:
                self.close()
            return Response(response.status, _lower_names(response), content, asked, answered)

    def _send(self, request: _Request, until: float) -> http.client.HTTPResponse:
        wire = self._connect(until)
        wire.set_limits(until, request.most_bytes + MAX_HEADER_BYTES)
        speaker = http.client.HTTPConnection(self.address.host, self.address.port)
        speaker.sock = wire  # Has all that is used of a socket.
        target = self.address.base + request.path
        if wire.by_proxy:
            target = f"{self.address.scheme}://{self.address.authority}{target}"
        speaker.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
        coding = {"Accept-Encoding": "gzip" if request.accepts_gzip else "identity"}
        headers = self._default_headers(wire) | coding | dict(request.headers or {})
        for name, value in headers.items():
            speaker.putheader(name, value.encode())
        if request.body is not None:
            speaker.putheader("Content-Length", str(len(request.body)))
        speaker.endheaders(request.body)
        return speaker.getresponse()

    def _default_headers(self, wire: LimitedSocket) -> dict[str, str]:
        own = {
            "Host": self.address.authority,
            "User-Agent": self.agent,
        }
        if self.token:
            own["Authorization"] = f"Bearer {self.token}"
        if wire.by_proxy and wire.proxy_authorization:
            own["Proxy-Authorization"] = wire.proxy_authorization
        return own

    def _connect(self, until: float) -> LimitedSocket:
        if self._socket is not None and not self._is_reusable():
            self.close()
        if self._socket is None:
            if self.address.scheme == "https" and self._tls is None:
                self._tls = ssl.create_default_context()
            self._socket = wire = LimitedSocket()
            if self._aborted:
                wire.abort()
            dial(wire, self.address.scheme, self.address.host, self.address.port, self._tls, until)
        if self._aborted:
            raise ConnectionAbortedError
        return self._socket

    def _is_reusable(self) -> bool:
        return self._socket is not None and self._socket.is_idle()


@dataclass(eq=False)
class Stream:
    """An answer that goes on. Names of `headers` are in lower case; `asked` and `answered` are as
    in :class:`Response`."""

    _connection: Connection
    _response: http.client.HTTPResponse
    headers: Mapping[str, str]
    sent_at: float
    answered_at: float

    def read(self, seconds: float) -> bytes:
        """What is there, at least a byte, at most 64 KiB; waits at most `seconds` for it. Empty at
        the end. Raises :class:`Failed`."""
        with _translate_errors(self._connection):
            wire = self._connection._socket
            if wire is None:
                return b""
            wire.set_limits(time.monotonic() + seconds, PIECE_BYTES + MAX_HEADER_BYTES)
            return self._response.read1(PIECE_BYTES)

    def has_more(self) -> bool:
        """Whether :meth:`read` would not have to wait. Raises :class:`Failed`."""
        with _translate_errors(self._connection):
            wire = self._connection._socket
            return wire is not None and wire.has_more()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _translate_errors(contextlib.AbstractContextManager[None]):
    """Whatever goes wrong inside ends the connection and is a :class:`Failed`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            return
        self._connection.close()
        if self._connection._aborted and isinstance(error, Exception):
            raise RequestFailed("it was closed here") from None
        if isinstance(error, ConnectionError):
            raise RequestFailed(describe_error(error)) from error
        if isinstance(error, OSError | http.client.HTTPException | ValueError | zlib.error):
            # Such an error may quote what was sent, the token too.
            raise RequestFailed(describe_error(error)) from None


def _read_body(response: http.client.HTTPResponse, most_bytes: int) -> bytes:
    """Return the decompressed body.

    Raises :class:`Failed` if it is too large in either form, too short, damaged, or in a coding
    that was not asked for.
    """
    declared = response.length
    if declared is not None and declared > most_bytes:
        raise RequestFailed(f"its answer has more than {most_bytes} bytes", status=response.status)
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip"):
        raise RequestFailed("its answer is compressed, unasked", status=response.status)
    gunzip = zlib.decompressobj(GZIP_WINDOW) if coding == "gzip" else None
    pieces, received, length = [], 0, 0
    while piece := response.read(PIECE_BYTES):
        received += len(piece)
        if gunzip is not None:
            # One byte above the limit is enough to refuse; a gzip bomb is never expanded further.
            piece = gunzip.decompress(piece, most_bytes - length + 1)
        pieces.append(piece)
        length += len(piece)
        if max(received, length) > most_bytes:
            raise RequestFailed(
                f"its answer has more than {most_bytes} bytes", status=response.status
            )
    is_cut_off = gunzip is not None and received and not gunzip.eof
    if is_cut_off or (declared is not None and received < declared):
        raise RequestFailed("its answer is cut off", status=response.status)
    if gunzip is not None and gunzip.unused_data:
        raise RequestFailed("its compressed answer is damaged", status=response.status)
    return b"".join(pieces)


def _status_error(status: int, headers: Mapping[str, str]) -> RequestFailed:
    retry_after, sent_at = headers.get("retry-after"), read_date(headers.get("date"))
    if sent_at is not None and (seconds := read_retry_after(retry_after, sent_at)) is not None:
        # Both dates are by the same clock, so it does not matter whether that is right.
        retry_after = f"{seconds:.0f}"
    return RequestFailed(f"it answers {status}", retry_after, status)


def _lower_names(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in response.headers.items()}
