"""The limits of a request apply in the application behind the middlewares."""

import asyncio
import json
import threading
from contextlib import contextmanager
from wsgiref.simple_server import WSGIRequestHandler, make_server

import httpx
import pytest

from switchgear.adapters.asgi import Incoming as AsgiIncoming
from switchgear.adapters.wsgi import Incoming as WsgiIncoming
from switchgear.patterns.deadline import Deadline, left
from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry import Retry

HEADERS = {"X-Request-Timeout-Ms": "5000", "X-Retry-Attempt": "1"}
CALLS = 3


def observe_call():
    """Return the seconds left here, and the attempts of a failing call."""
    calls = []

    @Retry(parameters=RetryParameters(attempts=CALLS, base_seconds=0.0))
    def failing():
        calls.append(1)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        failing()
    return json.dumps([left(), len(calls)]).encode()


async def asgi_app(scope, receive, send):
    body = observe_call()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def wsgi_app(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    return [observe_call()] if environ["PATH_INFO"] == "/whole" else iter([b"", observe_call()])


class Quiet(WSGIRequestHandler):
    def log_message(self, *_): ...


@contextmanager
def serving_wsgi(app):
    server = make_server("127.0.0.1", 0, app, handler_class=Quiet)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def ask_asgi(path, headers, trusted=(), peer=("127.0.0.1", 123)):
    async def main():
        transport = httpx.ASGITransport(AsgiIncoming(asgi_app, trusted_peers=trusted), client=peer)
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(main())


def ask_wsgi(path, headers, trusted=()):
    with serving_wsgi(WsgiIncoming(wsgi_app, trusted_peers=trusted)) as url:
        return httpx.get(url + path, headers=headers, verify=False)


each = pytest.mark.parametrize(
    ("ask", "path"), [(ask_asgi, "/"), (ask_wsgi, "/whole"), (ask_wsgi, "/streamed")]
)


@each
@pytest.mark.parametrize("trusted", [("127.0.0.1",), ("10.0.0.0/8", "127.0.0.0/8")])
def test_time_and_attempt_of_a_trusted_caller_hold_inside(ask, path, trusted):
    seconds, calls = ask(path, HEADERS, trusted).json()
    assert 0 < seconds <= 5
    assert calls == 1


@each
@pytest.mark.parametrize("trusted", [(), ("10.0.0.0/8", "::1")])
def test_of_a_stranger_only_the_time_holds_inside(ask, path, trusted):
    seconds, calls = ask(path, HEADERS, trusted).json()
    assert 0 < seconds <= 5
    assert calls == CALLS


@pytest.mark.parametrize(
    ("peer", "calls"),
    [
        (("::ffff:10.1.2.3", 1), 1),
        (("fd00::1", 1), 1),
        (("fe80::1%eth0", 1), CALLS),
        (("11.1.2.3", 1), CALLS),
        (("testclient", 1), CALLS),
        (None, CALLS),
    ],
)
def test_the_address_of_the_connection_decides(peer, calls):
    assert ask_asgi("/", HEADERS, ("10.0.0.0/8", "fd00::/8"), peer).json()[1] == calls


@pytest.mark.parametrize(
    ("trusted", "kind"),
    [
        ("10.0.0.0/8", TypeError),
        (5, TypeError),
        ((10,), TypeError),
        (("backend",), ValueError),
    ],
)
@pytest.mark.parametrize("make", [AsgiIncoming, WsgiIncoming])
def test_what_is_no_network_is_refused_by_name(make, trusted, kind):
    with pytest.raises(kind, match="trusted_peers"):
        make(asgi_app, trusted_peers=trusted)


@each
def test_without_them_nothing_holds(ask, path):
    assert ask(path, {}).json() == [None, CALLS]


@each
@pytest.mark.parametrize("name", ["X-Request-Timeout-Ms", "x-envoy-expected-rq-timeout-ms"])
def test_what_is_over_is_not_begun(ask, path, name):
    answer = ask(path, {name: "0"})
    assert answer.status_code == 504
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 504


@each
def test_what_makes_no_sense_is_left_aside(ask, path):
    nonsense = {"X-Request-Timeout-Ms": "-5", "grpc-timeout": "soon", "X-Retry-Attempt": "²"}
    encoded = {name: value.encode() for name, value in nonsense.items()}
    assert ask(path, encoded).json() == [None, CALLS]


def test_a_request_has_its_own_time_and_not_that_of_what_is_around():
    with Deadline(1000):
        seconds, _ = ask_asgi("/", {}).json()
    assert seconds is None


def test_nothing_is_left_behind_by_a_streamed_answer_that_is_not_read():
    body = WsgiIncoming(wsgi_app)({"PATH_INFO": "/", "HTTP_X_REQUEST_TIMEOUT_MS": "9000"}, print)
    next(iter(body))
    assert left() is None
    body.close()
    assert left() is None


def test_what_is_no_http_goes_through():
    seen_scopes = []

    async def app(scope, receive, send):
        seen_scopes.append(scope["type"])

    asyncio.run(AsgiIncoming(app)({"type": "lifespan"}, None, None))
    assert seen_scopes == ["lifespan"]
