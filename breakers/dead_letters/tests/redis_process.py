"""A Redis of one test's own, and a way to it that can break at a chosen moment."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import redis

from controlplane.supervisor import layout
from controlplane.supervisor.redis import Redis, prepare_server

HOST = "127.0.0.1"
CHUNK = 65536


@contextmanager
def own_redis(directory: Path, *options: str) -> Iterator[Redis]:
    """A server with these lines of configuration besides (`maxmemory 8mb`)."""
    given, process = _started(directory, options)
    try:
        yield given
    finally:
        process.kill()
        process.wait()


def _started(directory: Path, options: Sequence[str]) -> tuple[Redis, subprocess.Popen[bytes]]:
    """Start a server, in up to five tries.

    The bus port of a cluster's server may be taken; it ends at once then.
    """
    for _ in range(5):
        given = prepare_server(layout.create_layout(directory), durable=False)
        spec = given.spec()
        process = subprocess.Popen(
            spec.command, cwd=spec.directory, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert process.stdin is not None
        process.stdin.write((spec.stdin or b"") + "".join(f"{one}\n" for one in options).encode())
        process.stdin.close()
        if _answers(given.url, process):
            return given, process
        process.kill()
        process.wait()
    raise AssertionError("The server did not begin to answer.")


@contextmanager
def stopped_redis(directory: Path) -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with own_redis(directory) as given:
        with redis.Redis.from_url(given.url) as client:
            pid = client.info("server")["process_id"]
        os.kill(pid, signal.SIGSTOP)
        try:
            yield given.url
        finally:
            os.kill(pid, signal.SIGCONT)


class Way:
    """A proxy to a server that can break the connection.

    While `breaks_at` is set it breaks when a client sends that: before it arrives, or, if
    `is_late`, when the answer is on its way back.
    """

    def __init__(self, port: int) -> None:
        self.target = port
        self.breaks_at = b""
        self.is_late = False
        self.broke = 0
        self._listening = socket.create_server((HOST, 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection((HOST, self.target)) as server:
            answers = threading.Event()
            answers.set()
            back = threading.Thread(target=self._back, args=(server, client, answers), daemon=True)
            back.start()
            while sent := client.recv(CHUNK):
                if self.breaks_at and self.breaks_at in sent:
                    self.broke += 1
                    if self.is_late:
                        answers.clear()
                        server.sendall(sent)
                        time.sleep(0.1)
                    return
                server.sendall(sent)

    @staticmethod
    def _back(server: socket.socket, client: socket.socket, answers: threading.Event) -> None:
        with suppress(OSError):
            while given := server.recv(CHUNK):
                if answers.is_set():
                    client.sendall(given)


@contextmanager
def way_to(port: int) -> Iterator[Way]:
    way = Way(port)
    try:
        yield way
    finally:
        way.close()


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    with redis.Redis.from_url(url) as client:
        for _ in range(200):
            if process.poll() is not None:
                return False
            with suppress(redis.RedisError):
                client.ping()
                return True
            time.sleep(0.05)
    return False
