"""A flood from many connections, run by `python -m controlplane.tests.connection_flood`.

Reads one JSON object from its standard input: `port`, `connections`, `request` (`{n}` in it is
replaced by a number) and `mode`, a key of `MODES`. Ends when its input is closed, and then prints
the number of responses by status.
"""

import asyncio
import contextlib
import itertools
import json
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from controlplane.tests.installation import ROOT

SILENT_SECONDS = 0.2
UNREAD_SECONDS = 60.0
UNREAD_BYTES = 4096


@contextmanager
def flood(
    port: int, request: str = "", connections: int = 150, mode: str = ""
) -> Iterator[Counter[str]]:
    """Flood the port within this context; afterwards the counter has the responses."""
    told: Counter[str] = Counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "controlplane.tests.connection_flood"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    mode = mode or ("ask" if request else "silent")
    asked = {"port": port, "request": request, "connections": connections, "mode": mode}
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    try:
        assert process.stdout.readline() == "open\n"
        yield told
    finally:
        process.stdin.close()
        told.update(json.loads(process.stdout.readline() or "{}"))
        process.wait(10)


def post(path: str, body: str, *headers: str) -> str:
    """The text of a request that closes its connection; `{n}` becomes six digits."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Connection: close",
        f"Content-Length: {len(body) + 3 * body.count('{n}')}",
        *headers,
    ]
    return "\r\n".join(lines) + "\r\n\r\n" + body


def get(path: str, *headers: str) -> str:
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    return "\r\n".join(lines) + "\r\n\r\n"


def handshake(*headers: str) -> str:
    """Return the request that opens a WebSocket."""
    lines = [
        "GET /ws/live/ HTTP/1.1",
        "Host: localhost",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
        *headers,
    ]
    return "\r\n".join(lines) + "\r\n\r\n"


def frame(kind: bytes, payload: bytes) -> bytes:
    """Return a WebSocket frame with a mask of zeros; `kind` is its first byte."""
    return kind + b"\xfe" + struct.pack(">H", len(payload)) + bytes(4) + payload


SUBSCRIBE = frame(b"\x81", json.dumps({"subscribe": ["switches", "audit", "x" * 200]}).encode())


async def _ask(port: int, request: str, numbers: Iterator[int], told: Counter[str]) -> None:
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            text = request.replace("{n}", f"{next(numbers):06d}")
            writer.write(text.encode())
            answer = await reader.read()
            told[answer[9:12].decode() or "closed"] += 1
            writer.close()
        except OSError as error:
            told[type(error).__name__] += 1
            await asyncio.sleep(SILENT_SECONDS)


async def _keep_silent(
    port: int, _request: str, _numbers: Iterator[int], _told: Counter[str]
) -> None:
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await reader.read()
            writer.close()
        await asyncio.sleep(SILENT_SECONDS)


async def _open_socket(
    port: int, request: str, numbers: Iterator[int], told: Counter[str], say: bytes = b""
) -> None:
    """Open a WebSocket, and keep it open or send a message again and again."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request.replace("{n}", f"{next(numbers):06d}").encode())
            answer = await reader.readuntil(b"\r\n")
            told[answer[9:12].decode()] += 1
            while say and not reader.at_eof():
                writer.write(say)
                await writer.drain()
                await asyncio.sleep(0)
            if b" 101 " in answer:
                await reader.read()
            writer.close()
        except (OSError, asyncio.IncompleteReadError) as error:
            told[type(error).__name__] += 1
        await asyncio.sleep(SILENT_SECONDS)


async def _subscribe(port: int, request: str, numbers: Iterator[int], told: Counter[str]) -> None:
    await _open_socket(port, request, numbers, told, SUBSCRIBE)


async def _never_read(port: int, request: str, numbers: Iterator[int], told: Counter[str]) -> None:
    """Send many requests on one connection and read nothing."""
    loop = asyncio.get_running_loop()
    while True:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD_BYTES)
            connection.setblocking(False)
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(UNREAD_SECONDS):
                    await loop.sock_connect(connection, ("127.0.0.1", port))
                    while True:
                        text = request.replace("{n}", f"{next(numbers):06d}")
                        await loop.sock_sendall(connection, text.encode())
        told["unread"] += 1
        await asyncio.sleep(SILENT_SECONDS)


MODES: dict[str, Callable[[int, str, Iterator[int], Counter[str]], Awaitable[None]]] = {
    "ask": _ask,
    "silent": _keep_silent,
    "socket": _open_socket,
    "subscribe": _subscribe,
    "unread": _never_read,
}


async def _flood(asked: dict[str, Any], ended: threading.Event, told: Counter[str]) -> None:
    numbers = itertools.count()
    port, request = asked["port"], asked["request"]
    tasks = [
        asyncio.ensure_future(MODES[asked["mode"]](port, request, numbers, told))
        for _ in range(asked["connections"])
    ]
    await asyncio.sleep(SILENT_SECONDS)
    print("open", flush=True)
    while not ended.is_set():
        await asyncio.sleep(SILENT_SECONDS)
    for task in tasks:
        task.cancel()


def main() -> None:
    asked = json.loads(sys.stdin.readline())
    ended = threading.Event()
    told: Counter[str] = Counter()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    asyncio.run(_flood(asked, ended, told))
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
