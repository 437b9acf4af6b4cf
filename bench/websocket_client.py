"""A minimal WebSocket client (RFC 6455) for thousands of connections."""

import base64
import os
import re
import socket

from .servers import HOST

PATH = "/ws/live/"
MAX_SOCKETS_PER_TOKEN = 50
"""Sockets that one token may have."""
VERSION = re.compile(rb'"event":"switch.changed".*?"version":(\d+)')
HELLO = b'{"topic":"hello"'
CONNECTED = 0
"""Returned instead of a version for the first message, which confirms the connection."""


class WebSocket:
    """A WebSocket that receives changes of switches."""

    def __init__(self, connection: socket.socket, tokens: str, number: int) -> None:
        given = tokens.split(",")
        self._received = b""
        self._shaken = False
        lines = (
            f"GET {PATH} HTTP/1.1",
            f"Host: {HOST}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            f"Authorization: Bearer {given[number % len(given)]}",
        )
        connection.send("\r\n".join((*lines, "", "")).encode())

    def take(self, data: bytes) -> list[int]:
        """Process received bytes; return the snapshot versions in the messages that are complete.

        The server's greeting counts as the version `CONNECTED`.
        """
        self._received += data
        if not self._shaken:
            head, whole, rest = self._received.partition(b"\r\n\r\n")
            if not whole:
                return []
            if b" 101 " not in head.split(b"\r\n")[0]:
                raise SystemExit(f"bench: a socket was answered with {head!r}")
            self._shaken, self._received = True, rest
        found = []
        while (frame := self._frame()) is not None:
            if frame.startswith(HELLO):
                found.append(CONNECTED)
            elif found_version := VERSION.search(frame):
                found.append(int(found_version[1]))
        return found

    def _frame(self) -> bytes | None:
        """Remove and return the next received frame; None while it is incomplete."""
        data = self._received
        if len(data) < 2:
            return None
        begin, size = 2, data[1] & 0x7F
        for short, width in ((126, 2), (127, 8)):
            if size == short:
                begin, size = 2 + width, int.from_bytes(data[2 : 2 + width])
                break
        if len(data) < begin + size:
            return None
        self._received = data[begin + size :]
        return data[begin : begin + size]
