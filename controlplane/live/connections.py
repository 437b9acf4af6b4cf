"""TCP connections of WebSockets, found by file descriptor.

The server neither limits incomplete messages nor closes connections whose client doesn't read.
These functions provide the traffic counters and the abort that such limits need.
"""

import os
import socket
import stat
import struct
from collections.abc import Collection
from typing import NamedTuple

Peer = tuple[str, int]
DESCRIPTORS = "/dev/fd"
# Fields of `struct tcp_info` of Linux 4.6 and later: `tcpi_unacked`; `tcpi_bytes_acked`,
# `tcpi_bytes_received`, two counts of segments and `tcpi_notsent_bytes`.
_INFO = struct.Struct("@24xI92xQQ8xI")


class Traffic(NamedTuple):
    """Byte counts of a connection; `is_pending` if output is unsent or not acknowledged yet."""

    received: int
    acknowledged: int
    is_pending: bool


def find_descriptors(peers: Collection[Peer]) -> dict[Peer, int]:
    """Return this process's file descriptors of connections, by peer (address and port)."""
    descriptors: dict[Peer, int] = {}
    for name in os.listdir(DESCRIPTORS):
        peer = _read_peer(int(name))
        if peer is not None and peer in peers:
            descriptors[peer] = int(name)
    return descriptors


def read_traffic(descriptor: int, peer: Peer) -> Traffic | None:
    """Return the traffic of the connection from `peer`.

    None if the client has disconnected, or if the operating system has no such counters.
    """
    if not hasattr(socket, "TCP_INFO") or _read_peer(descriptor) != peer:
        return None
    connection = socket.socket(fileno=descriptor)
    try:
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    except OSError:
        return None
    finally:
        connection.detach()
    if len(info) < _INFO.size:
        return None
    unacknowledged, acknowledged, received, unsent = _INFO.unpack_from(info)
    return Traffic(received, acknowledged, is_pending=bool(unacknowledged or unsent))


def abort_connection(peer: Peer) -> bool:
    """Reset the connection from `peer`; return False if there is none."""
    descriptor = find_descriptors([peer]).get(peer)
    if descriptor is None:
        return False
    try:
        connection = socket.socket(fileno=os.dup(descriptor))  # A copy that can be closed.
    except OSError:
        return False
    with connection:
        if connection.getpeername()[:2] != peer:
            return False
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    return True


def _read_peer(descriptor: int) -> Peer | None:
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return None
        connection = socket.socket(fileno=descriptor)
        try:
            name = connection.getpeername()
        finally:
            connection.detach()
    except OSError:
        return None
    return (name[0], name[1]) if isinstance(name, tuple) else None
