"""More idle connections than a process holds requests: other callers are still answered."""

import contextlib
import socket
from pathlib import Path

import httpx
import pytest

from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until
from controlplane.dataplane.tests.test_alone import TOKEN, answers, variables
from controlplane.dataplane.tests.test_command import serving
from controlplane.dataplane.tests.test_following import make_token

IDLE = 1500


@pytest.mark.faults
@pytest.mark.smoke
def test_idle_connections_keep_nobody_out(idle: Following, tmp_path: Path) -> None:
    make_token()
    environment = {**variables(idle, tmp_path), "MAX_HELD": "1"}
    with serving(environment) as (_, url), contextlib.ExitStack() as stack:
        wait_until(lambda: answers(url, "/health/ready/data"), 15)
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        for _ in range(IDLE):
            one = stack.enter_context(socket.create_connection(address, timeout=5))
            one.sendall(b"GET /health/live HTTP/1.1\r\nHost: plane\r\n\r\n")
            assert one.recv(12) == b"HTTP/1.1 200"

        assert httpx.get(f"{url}/api/v1/snapshot", headers=TOKEN, timeout=5).status_code == 200
