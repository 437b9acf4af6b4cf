"""Connections by file descriptor: found by their peer, measured, and cut."""

import os
import socket
import sys
from contextlib import closing, suppress

import pytest

from controlplane.core.live.subscribers import Subscriber
from controlplane.live import connections
from controlplane.live.connections import Traffic
from controlplane.live.sockets import (
    BYTES_EACH_LOOK,
    MAX_SILENT_BYTES,
    MAX_UNFINISHED_BYTES,
    STUCK_SECONDS,
    Socket,
)


@pytest.fixture
def pair():
    """Two ends of a TCP connection: the server's and the client's."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        closing(socket.create_connection(listener.getsockname())) as client,
        closing(listener.accept()[0]) as server,
    ):
        yield server, client


def test_connection_is_found_by_the_address_of_its_peer(pair):
    server, client = pair

    found = connections.find_descriptors([client.getsockname(), ("127.0.0.1", 1)])

    assert found == {client.getsockname(): server.fileno()}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what was received")
def test_bytes_that_came_are_counted_although_nobody_read_them(pair):
    server, client = pair
    client.sendall(b"x" * 1000)
    server.recv(1, socket.MSG_PEEK)

    assert connections.read_traffic(server.fileno(), client.getsockname()) == (1000, 0, False)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what was taken")
def test_bytes_that_nobody_takes_are_told_apart_from_those_that_were_taken(pair):
    server, client = pair
    server.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            server.send(b"x" * 65_536)

    traffic = connections.read_traffic(server.fileno(), client.getsockname())

    assert traffic.acknowledged > 0
    assert traffic.is_pending


def test_descriptor_that_belongs_to_another_peer_by_now_tells_nothing(pair):
    server, client = pair

    assert connections.read_traffic(server.fileno(), ("127.0.0.1", 1)) is None
    assert connections.read_traffic(client.fileno(), client.getsockname()) is None


def test_connection_that_is_cut_ends_for_both_sides_and_keeps_its_descriptor(pair):
    server, client = pair

    assert connections.abort_connection(client.getsockname())

    client.settimeout(2)
    with suppress(ConnectionResetError):
        assert client.recv(1) == b""
    assert os.fstat(server.fileno())
    assert not connections.abort_connection(("127.0.0.1", 1))


def test_message_without_an_end_floods_and_whole_messages_do_not():
    whole, endless, quiet = (Socket(Subscriber("token:1", frozenset()), "hello") for _ in range(3))
    looks = range(0, 4 * MAX_UNFINISHED_BYTES, MAX_UNFINISHED_BYTES)

    told_whole = []
    for received in looks:
        whole.messages += 1
        told_whole.append(whole.is_flooding(received))
    told_endless = [endless.is_flooding(received) for received in looks]
    told_quiet = [quiet.is_flooding(20 * look) for look in range(10_000)]

    assert not any(told_whole)
    assert told_endless == [False, False, True, True]
    assert not any(told_quiet)


def test_message_without_an_end_floods_however_slowly_it_comes():
    endless, talking = (Socket(Subscriber("token:1", frozenset()), "hello") for _ in range(2))
    looks = range(0, 2 * MAX_SILENT_BYTES, BYTES_EACH_LOOK)

    told_endless = [endless.is_flooding(received) for received in looks]
    told_talking = []
    for number, received in enumerate(looks):
        talking.messages += number % 1000 == 0
        told_talking.append(talking.is_flooding(received))

    assert told_endless.index(True) == MAX_SILENT_BYTES // BYTES_EACH_LOOK + 1
    assert not any(told_talking)


def test_socket_whose_reader_takes_nothing_of_what_waits_stalls():
    slow, idle, stuck = (Socket(Subscriber("token:1", frozenset()), "hello") for _ in range(3))
    times = [0.0, STUCK_SECONDS * 0.9, STUCK_SECONDS * 1.8]

    assert not any(slow.is_stalled(Traffic(0, int(at), is_pending=True), at) for at in times)
    assert not any(idle.is_stalled(Traffic(0, 0, is_pending=False), at) for at in times)
    assert [stuck.is_stalled(Traffic(0, 0, is_pending=True), at) for at in times] == [
        False,
        False,
        True,
    ]
