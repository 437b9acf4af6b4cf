"""A socket with limits of time, bytes and CPU time, for :mod:`http.client` to read from.

The timeout of a plain socket restarts with each byte, so it does not limit the whole answer.
"""

import base64
import contextlib
import encodings.idna  # noqa: F401 - resolving a host name imports it, in a thread
import io
import os
import socket
import ssl
import time
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from switchgear.console.address import Address
from switchgear.console.errors import SocketError

MAX_PROXY_BYTES = 2**14
MAX_CPU_SECONDS, MAX_CPU_SECONDS_PER_BYTE = 0.25, 1e-7
"""Limit of the CPU time for an answer: a fixed part and a part per byte. An answer that arrives in
pieces of normal size needs far less."""


class LimitedSocket:
    """A connection that :func:`dial` opens. Not thread-safe, except for :meth:`abort`."""

    def __init__(self) -> None:
        self.by_proxy = False
        """True if each request is sent to a proxy, rather than through a tunnel."""
        self.proxy_authorization = ""
        self._socket: socket.socket | None = None
        self._until = 0.0
        self._bytes_left = 0
        self._busy_until = 0.0
        self._aborted = False
        self._reader: io.BufferedReader | None = None
        self._is_peeking = False

    def set_limits(self, until: float, max_bytes: int) -> None:
        """Set the deadline, a monotonic time, and the number of bytes that may be received.

        Also starts to count the CPU time of the current thread, which is limited, too.
        """
        self._until, self._bytes_left = until, max_bytes
        self._busy_until = time.thread_time() + MAX_CPU_SECONDS

    def attach(self, opened: socket.socket) -> socket.socket:
        """Set the socket of this connection, which :meth:`abort` is to shut down, and return it."""
        self._socket = opened
        if self._aborted:
            raise ConnectionAbortedError
        return opened

    def get_socket(self) -> socket.socket:
        """Return the socket, with the time left as timeout. Raise :class:`TimeoutError`."""
        if self._socket is None or self._aborted:
            raise ConnectionAbortedError
        self._socket.settimeout(seconds_until(self._until))
        return self._socket

    def receive_into(self, buffer: memoryview) -> int | None:
        """Receive bytes into `buffer`, and return their number: 0 at the end of the stream.

        Return None if no data has arrived and the call comes from :meth:`has_more`, which does not
        wait.
        """
        receiving = self.get_socket()
        if self._is_peeking:
            receiving.settimeout(0)
        try:
            read = receiving.recv_into(buffer)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        self._bytes_left -= read
        if self._bytes_left < 0:
            raise SocketError("the server sent too much data")
        self._busy_until += read * MAX_CPU_SECONDS_PER_BYTE
        if time.thread_time() > self._busy_until:
            raise SocketError("the server sends too slowly")
        return read

    def sendall(self, data: Any) -> None:
        """Send all data within the time that is left. Called by :mod:`http.client`."""
        with memoryview(data).cast("B") as view:
            sent = 0
            while sent < len(view):
                sent += self.get_socket().send(view[sent:])

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return a reader of this connection. Called by :mod:`http.client`."""
        self._reader = io.BufferedReader(_SocketReader(self))
        return self._reader

    def has_more(self) -> bool:
        """Return True if some of the body can be read without waiting.

        The line end after a chunk does not count as a part of the body.
        """
        if self._reader is None or self._reader.closed:
            return False
        self._is_peeking = True
        try:
            return bool(self._reader.peek(1).strip(b"\r\n"))
        finally:
            self._is_peeking = False

    def is_idle(self) -> bool:
        """Return True if the connection can take a request: it is open, and no data waits."""
        if self._socket is None or self._aborted:
            return False
        try:
            self._socket.settimeout(0)
            # The method of the base class, since TLS sockets take no flags.
            socket.socket.recv(self._socket, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def abort(self) -> None:
        """Shut the connection down at once. Thread-safe: the descriptor stays open."""
        self._aborted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Do nothing: :mod:`http.client` calls this before it has read the answer."""

    def close_socket(self, *, in_child: bool = False) -> None:
        """Close the socket. With `in_child`, the parent process keeps its connection."""
        opened, self._socket = self._socket, None
        if opened is not None:
            with contextlib.suppress(OSError):
                if in_child:
                    os.close(opened.detach())
                else:
                    opened.close()


class _SocketReader(io.RawIOBase):
    def __init__(self, connection: LimitedSocket) -> None:
        self._wire = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        return self._wire.receive_into(memoryview(buffer))


def seconds_until(until: float) -> float:
    """Return the seconds until a monotonic time; raise :class:`TimeoutError` if it has passed."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def dial(
    connection: LimitedSocket, address: Address, tls: ssl.SSLContext | None, until: float
) -> None:
    """Open the connection, through the proxy that the environment names, if any.

    Raise :class:`OSError`. Resolving the host name is not limited in time.
    """
    host, port = address.host, address.port
    connection.set_limits(until, MAX_PROXY_BYTES)
    proxy = getproxies().get(address.scheme) if not proxy_bypass(f"{host}:{port}") else None
    if not proxy:
        _connect(connection, host, port, until)
    else:
        # `HTTP_PROXY=proxy:3128` is as common as one with a scheme.
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            connection.proxy_authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        _connect(connection, parts.hostname or "", parts.port or 80, until)
        connection.by_proxy = tls is None
        if tls is not None:
            _open_tunnel(connection, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    if tls is not None:
        # Only an attached socket can be aborted, so the handshake comes last.
        secured = tls.wrap_socket(
            connection.get_socket(), server_hostname=host, do_handshake_on_connect=False
        )
        connection.attach(secured)
        secured.do_handshake()


def _connect(connection: LimitedSocket, host: str, port: int, until: float) -> None:
    """Connect to the first address of `host` that accepts; each has an equal share of the time."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    last_error: OSError = SocketError("the host name has no address")
    for number, (family, kind, protocol, _name, address) in enumerate(found):
        candidate = connection.attach(socket.socket(family, kind, protocol))
        try:
            candidate.settimeout(seconds_until(until) / (len(found) - number))
            candidate.connect(address)
            candidate.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError as error:
            last_error = error
            connection.close_socket()
        else:
            return
    raise last_error


def _open_tunnel(connection: LimitedSocket, authority: str) -> None:
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if connection.proxy_authorization:
        lines.append(f"Proxy-Authorization: {connection.proxy_authorization}")
    connection.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
    # Byte by byte, so as not to read beyond the empty line.
    answer, byte = bytearray(), bytearray(1)
    while not answer.endswith(b"\r\n\r\n"):
        if not connection.receive_into(memoryview(byte)):
            raise ConnectionResetError
        answer += byte
    status = answer.split(b" ", 2)[1:2]
    if not status or not status[0].startswith(b"2"):
        raise SocketError("the proxy refused the tunnel")
