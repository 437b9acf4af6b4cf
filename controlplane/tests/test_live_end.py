"""Shutdown of a web process with hundreds of open sockets."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from controlplane.asgi_server import GRACE_SECONDS
from controlplane.core.http.tests.callers import person, token_text
from controlplane.dataplane.tests.processes import Server, web
from controlplane.tests.console_sockets import Console
from controlplane.tests.installation import free_port

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(90)]
SOCKETS, EACH = 300, 50


@pytest.fixture
def mortal(console: Console, tmp_path: Path):
    """A web process of the test's own."""
    variables = {**console.server.environment, "SWITCHGEAR_DATA_DIR": str(tmp_path)}
    with web(variables, free_port(), tmp_path / "said.txt") as server:
        yield server


def terminated(process: Popen[bytes]) -> None:
    """End the process as a supervisor does."""
    process.terminate()


def interrupted(process: Popen[bytes]) -> None:
    """Interrupt the process as Ctrl-C does: the terminal signals the whole group."""
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.faults
@pytest.mark.smoke
@pytest.mark.parametrize("end", [terminated, interrupted])
def test_every_socket_is_told_and_the_process_ends_in_time(mortal, transactional_db, end):
    user = person("admin", "token-owner")
    tokens = [token_text(user, ["switches:read"], name=f"t{n}") for n in range(SOCKETS // EACH)]

    codes, seconds = asyncio.run(_ended(mortal, tokens, end))

    assert Counter(codes) == {1012: SOCKETS}
    assert seconds < GRACE_SECONDS


async def _ended(
    server: Server, tokens: list[str], end: Callable[[Popen[bytes]], None]
) -> tuple[list[int], float]:
    """Return each socket's close code, and the seconds the process took to end."""
    address = server.url.replace("http", "ws") + "/ws/live/"
    await asyncio.sleep(1.5)  # Until the tokens are known there.
    open_ = []
    for token in tokens:
        headers = {"Authorization": f"Bearer {token}"}
        some = [connect(address, additional_headers=headers) for _ in range(EACH)]
        open_ += await asyncio.gather(*some)
    began = time.monotonic()
    assert server.process is not None
    end(server.process)
    codes = await asyncio.gather(*(_code(each) for each in open_))
    await asyncio.to_thread(server.process.wait, 15)
    return list(codes), time.monotonic() - began


async def _code(socket: ClientConnection) -> int:
    while True:
        try:
            await socket.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 0
