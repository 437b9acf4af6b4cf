"""A socket that keeps to a time and an amount, whatever the other side does.

:mod:`http.client` reads through it. A time-out of a plain socket begins anew with each byte.
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

from switchgear.console.errors import SocketError

MAX_PROXY_BYTES = 2**14
MAX_CPU_SECONDS, MAX_CPU_SECONDS_PER_BYTE = 0.25, 1e-7
"""Of the processor's time, what may be spent on an answer and on each of its bytes: many times what
one takes that does not come in crumbs."""


class LimitedSocket:
    """A connection to be opened by :func:`dial`. Of one thread, but for :meth:`abort`."""

    def __init__(self) -> None:
        self.by_proxy = False
        """Whether a proxy is asked for each request, rather than once for a tunnel."""
        self.proxy_authorization = ""
        self._socket: socket.socket | None = None
        self._until = 0.0
        self._most_bytes = 0
        self._busy_until = 0.0
        self._aborted = False
        self._reader: io.BufferedReader | None = None
        self._is_peeking = False

    def set_limits(self, until: float, most_bytes: int) -> None:
        """From now on, in this thread: to go on until then, on the monotonic clock, to receive that
        much, and not to be kept busy with it."""
        self._until, self._most_bytes = until, most_bytes
        self._busy_until = time.thread_time() + MAX_CPU_SECONDS

    def attach(self, opened: socket.socket) -> socket.socket:
        """This is the socket now, which :meth:`abort` ends."""
        self._socket = opened
        if self._aborted:
            raise ConnectionAbortedError
        return opened

    def get_socket(self) -> socket.socket:
        """The socket, with the time that is left; raises :class:`TimeoutError` if none is."""
        if self._socket is None or self._aborted:
            raise ConnectionAbortedError
        self._socket.settimeout(seconds_until(self._until))
        return self._socket

    def receive_into(self, buffer: memoryview) -> int | None:
        """As many bytes as there are; 0 at the end; None if there are none and we do not wait."""
        receiving = self.get_socket()
        if self._is_peeking:
            receiving.settimeout(0)
        try:
            read = receiving.recv_into(buffer)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        self._most_bytes -= read
        if self._most_bytes < 0:
            raise SocketError("it sends too much")
        self._busy_until += read * MAX_CPU_SECONDS_PER_BYTE
        if time.thread_time() > self._busy_until:
            raise SocketError("it sends too little at a time")
        return read

    def sendall(self, data: Any) -> None:
        """Within the time that is left in all. For :mod:`http.client`."""
        with memoryview(data).cast("B") as view:
            sent = 0
            while sent < len(view):
                sent += self.get_socket().send(view[sent:])

    def makefile(self, _mode: str) -> io.BufferedReader:
        """For :mod:`http.client`."""
        self._reader = io.BufferedReader(_SocketReader(self))
        return self._reader

    def has_more(self) -> bool:
        """Whether there is something to be read now: no mere line end, as that of a chunk that has
        been read, nor the end of all."""
        if self._reader is None or self._reader.closed:
            return False
        self._is_peeking = True
        try:
            return bool(self._reader.peek(1).strip(b"\r\n"))
        finally:
            self._is_peeking = False

    def is_idle(self) -> bool:
        """Whether it is open, and nothing came that nobody asked for."""
        if self._socket is None or self._aborted:
            return False
        try:
            self._socket.settimeout(0)
            # Of the class below a TLS socket, which takes no flags.
            socket.socket.recv(self._socket, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def abort(self) -> None:
        """End what goes on, at once. From any thread: the socket's number stays taken."""
        self._aborted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """For :mod:`http.client`, which closes before it has read the last answer: not yet."""

    def close_socket(self) -> None:
        """Close it."""
        held, self._socket = self._socket, None
        if held is not None:
            with contextlib.suppress(OSError):
                held.close()

    def close_in_child(self) -> None:
        """In the child of a fork: close what is ours of it, without a word to the other side."""
        held, self._socket = self._socket, None
        if held is not None:
            with contextlib.suppress(OSError):
                os.close(held.detach())


class _SocketReader(io.RawIOBase):
    def __init__(self, wire: LimitedSocket) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        return self._wire.receive_into(memoryview(buffer))


def seconds_until(until: float) -> float:
    """Seconds until then; raises :class:`TimeoutError` if it is over."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def dial(
    wire: LimitedSocket, scheme: str, host: str, port: int, tls: ssl.SSLContext | None, until: float
) -> None:
    """Open it, by the proxy that the environment names, if any. Raises :class:`OSError`.

    To look up a name is up to the system, and takes the time that it takes.
    """
    wire.set_limits(until, MAX_PROXY_BYTES)
    proxy = getproxies().get(scheme) if not proxy_bypass(f"{host}:{port}") else None
    if not proxy:
        _connect(wire, host, port, until)
    else:
        # `HTTP_PROXY=proxy:3128` is as common as one with a scheme.
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            wire.proxy_authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        _connect(wire, parts.hostname or "", parts.port or 80, until)
        wire.by_proxy = tls is None
        if tls is not None:
            _tunnel(wire, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    if tls is not None:
        # What is not held can't be aborted, so the handshake comes after; its time-out is for all
        # of it.
        secured = tls.wrap_socket(
            wire.get_socket(), server_hostname=host, do_handshake_on_connect=False
        )
        wire.attach(secured)
        secured.do_handshake()


def _connect(wire: LimitedSocket, host: str, port: int, until: float) -> None:
    """To the first of its addresses that answers; each has its share of the time."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    trouble: OSError = SocketError("it has no address")
    for number, (family, kind, protocol, _name, address) in enumerate(found):
        one = wire.attach(socket.socket(family, kind, protocol))
        try:
            one.settimeout(seconds_until(until) / (len(found) - number))
            one.connect(address)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError as error:
            trouble = error
            wire.close_socket()
        else:
            return
    raise trouble


def _tunnel(wire: LimitedSocket, authority: str) -> None:
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if wire.proxy_authorization:
        lines.append(f"Proxy-Authorization: {wire.proxy_authorization}")
    wire.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
    # Byte by byte: what follows the empty line is not ours to read.
    answer, byte = bytearray(), bytearray(1)
    while not answer.endswith(b"\r\n\r\n"):
        if not wire.receive_into(memoryview(byte)):
            raise ConnectionResetError
        answer += byte
    status = answer.split(b" ", 2)[1:2]
    if not status or not status[0].startswith(b"2"):
        raise SocketError("the proxy refuses the tunnel")
