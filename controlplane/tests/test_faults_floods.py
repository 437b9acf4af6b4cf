"""Floods from 150 connections: an engagement by token, by page and a press in Slack go through."""

import json
import socket
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlencode

import httpx
import pytest

from controlplane.notify.interactions.tests.slack_requests import SECRET
from controlplane.tests.connection_flood import flood, frame, get, handshake, post
from controlplane.tests.installation import running
from controlplane.tests.operators import MAKE_LEE, REASON, Operators
from controlplane.tests.poller import polling

pytestmark = [pytest.mark.faults, pytest.mark.timeout(400)]
MAX_SECONDS = 2.0
BUILD_UP_SECONDS = 3.0
CLOSE = "Connection: close\r\n"
BOOT = "4b1d9c52-0f0e-4a53-9d6e-7a0f6d0c1f11"
JSON = "Content-Type: application/json"
FORM_TYPE = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def operators(tmp_path_factory):
    folder = tmp_path_factory.mktemp("floods") / "var"
    with running(folder, SLACK_SIGNING_SECRET=SECRET) as installation:
        installation.manage("shell", "-v0", "-c", MAKE_LEE)
        yield Operators(installation)


def schema(_operators):
    return get("/api/schema/", "Accept: application/vnd.oai.openapi")


def sign_in(operators):
    token = httpx.get(f"{operators.installation.url}/sign-in/").cookies["csrftoken"]
    fields = (
        urlencode({"csrfmiddlewaretoken": token, "password": "x" * 12}) + "&username=nobody-{n}"
    )
    return post("/sign-in/", fields, FORM_TYPE, f"Cookie: csrftoken={token}")


def passkeys(_operators):
    return get("/sign-in/passkey/")


def static(_operators):
    return get("/static/staticfiles.json")


def pages(_operators):
    return get("/sign-in/")


def backtests(operators):
    slo = {"name": "flooded", "target": 0.99, "window_days": 30}
    operators.installation.client(operators.read).post("/api/v1/slos/", json=slo)
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 30 * 86400))
    body = json.dumps({"start": start, "step": "1m"})
    return post("/api/v1/slos/flooded/backtest", body, JSON, f"X-API-Key: {operators.read}")


def engage_by_strangers(_operators):
    body = json.dumps({"reason": REASON, "expires_in": "24h"})
    return post("/api/v1/switches/feature/flood-{n}/engage", body, JSON, "X-API-Key: sg_no_token")


def engage_by_one_token(operators):
    body = json.dumps({"reason": REASON, "expires_in": "24h"})
    path = "/api/v1/switches/feature/flood-{n}/engage"
    return post(path, body, JSON, f"X-API-Key: {operators.write}")


def invented_sessions(_operators):
    cookie = "Cookie: sessionid=" + "a" * 26 + "{n}; csrftoken=" + "b" * 32
    fields = f"csrfmiddlewaretoken={'b' * 32}&scope=feature&key=x&reason=y"
    return post("/switches/engage/", fields, FORM_TYPE, cookie)


def forged_presses(_operators):
    return post("/slack/interactions", "payload={n}", FORM_TYPE, "X-Slack-Signature: v0=no")


def lists_by_one_token(operators):
    return get("/api/v1/switches/?limit=100", f"X-API-Key: {operators.write}")


def sockets_of_strangers(_operators):
    return handshake()


def open_sockets(operators):
    return handshake(f"X-API-Key: {operators.write}")


def subscribing_sockets(operators):
    return handshake(f"X-API-Key: {operators.write}")


def unread_lists(operators):
    return get("/api/v1/switches/?limit=100", f"X-API-Key: {operators.write}").replace(CLOSE, "")


def unread_snapshots(operators):
    return get("/api/v1/snapshot", f"X-API-Key: {operators.write}").replace(CLOSE, "")


def held_polls(operators):
    key = f"X-API-Key: {operators.write}"
    known = operators.program.get("/api/v1/snapshot").headers["ETag"]
    return get("/api/v1/snapshot?wait=30", key, f"If-None-Match: {known}")


def reports_by_one_token(operators):
    body = json.dumps({"service": "core", "instance": "flood-{n}", "boot": BOOT, "seq": 1})
    return post("/api/v1/report", body, JSON, f"X-API-Key: {operators.read}")


MODES = {
    "sockets_of_strangers": "socket",
    "open_sockets": "socket",
    "subscribing_sockets": "subscribe",
    "unread_lists": "unread",
    "unread_snapshots": "unread",
}


def silence(_operators):
    """Connections that never send a byte."""
    return ""


def beginnings(_operators):
    """Return a request whose body never arrives."""
    return post("/api/v1/switches/feature/x/engage", "", JSON).replace("Length: 0", "Length: 9")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(schema, marks=pytest.mark.smoke),
        silence,
        beginnings,
        sign_in,
        passkeys,
        static,
        pages,
        backtests,
        engage_by_strangers,
        engage_by_one_token,
        invented_sessions,
        forged_presses,
        lists_by_one_token,
        sockets_of_strangers,
        open_sockets,
        subscribing_sockets,
        unread_lists,
        unread_snapshots,
        held_polls,
        reports_by_one_token,
    ],
    ids=lambda kind: kind.__name__,
)
def test_flood_of_one_kind_leaves_the_lane_of_kills_open(operators, kind):
    request, mode = kind(operators), MODES.get(kind.__name__, "")
    installation = operators.installation

    with (
        flood(installation.port, request, mode=mode) as told,
        polling(installation.url, operators.poll) as polls,
    ):
        time.sleep(BUILD_UP_SECONDS)
        found = {**operators.measured(), "poll": polls.seconds}

    for name, seconds in found.items():
        print(
            f"{kind.__name__} {name}: p50 {statistics.median(seconds):.3f} max {max(seconds):.3f}"
        )
    print(f"{kind.__name__}: {dict(told)}")
    assert polls.failures == []
    assert max(map(max, found.values())) < MAX_SECONDS


def test_silent_connection_is_closed_within_30_seconds(operators):
    with socket.create_connection(("127.0.0.1", operators.installation.port)) as silent:
        silent.settimeout(30)

        assert silent.recv(1) == b""


def test_socket_whose_message_never_ends_is_cut_before_it_fills_the_memory(operators):
    with opened(operators) as connection:
        sent = send_until_cut(connection, FRAGMENT, pause=0.001, seconds=20)

    assert sent < 64 * 1024 * 1024


def test_socket_that_nobody_reads_is_cut(operators):
    ask = frame(b"\x81", json.dumps({"subscribe": ["x" * 3900]}).encode())

    with opened(operators, buffer=4096) as connection:
        send_until_cut(connection, ask, pause=1.05, seconds=60)


def send_until_cut(connection: socket.socket, data: bytes, pause: float, seconds: float) -> int:
    """Send it again and again; the bytes that were sent until the other side cut the connection."""
    sent, ends = 0, time.monotonic() + seconds
    with suppress(ConnectionError):
        while time.monotonic() < ends:
            connection.sendall(data)
            sent += len(data)
            time.sleep(pause)
    assert time.monotonic() < ends, f"not cut after {sent} bytes"
    return sent


FRAGMENT = frame(b"\x00", b"x" * 65_000)


@contextmanager
def opened(operators: Operators, buffer: int = 0) -> Iterator[socket.socket]:
    """Open a WebSocket by hand and begin a message."""
    with socket.socket() as connection:
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.connect(("127.0.0.1", operators.installation.port))
        connection.settimeout(20)
        connection.sendall(handshake(f"X-API-Key: {operators.write}").encode())
        assert b" 101 " in connection.recv(500)
        if not buffer:
            connection.sendall(frame(b"\x01", b"x" * 1000))
        yield connection
