"""A flood from many connections, as a process of its own: `python -m controlplane.tests.flooding`.

Reads one JSON object from its standard input: `port`, `connections`, and either `request` (text
sent again and again, `{n}` replaced by a number) or nothing, for connections that stay silent. Ends
when its input is closed, and then says how often each status was answered.
"""

import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from controlplane.tests.installation import ROOT

SILENT_SECONDS = 0.2


@contextmanager
def flood(port: int, request: str = "", connections: int = 150) -> Iterator[Counter[str]]:
    """While inside, that many connections ask; afterwards the counter has what they were told."""
    told: Counter[str] = Counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "controlplane.tests.flooding"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    asked = {"port": port, "request": request, "connections": connections}
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


async def _keep_silent(port: int) -> None:
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await reader.read()
            writer.close()
        await asyncio.sleep(SILENT_SECONDS)


async def _flood(asked: dict[str, Any], ended: threading.Event, told: Counter[str]) -> None:
    numbers = itertools.count()
    port, request = asked["port"], asked["request"]
    tasks = [
        asyncio.create_task(_ask(port, request, numbers, told) if request else _keep_silent(port))
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
