"""The gate in front of Django: no request waits for an unresponsive database."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from controlplane import bulkhead, request_body
from controlplane import gate as gate_module
from controlplane.core.protocol import MAX_BODY_BYTES
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.served import BEARER, plane
from controlplane.gate import ORDINARY, RequestGate

SCOPE = {"type": "http", "method": "POST", "path": "/api/v1/switches/", "headers": []}
TOKEN = [(b"authorization", BEARER["Authorization"].encode())]


async def refuse(call, error):
    await call.respond((error.status, [], b""))


class Sent(list):
    """An ASGI `send` channel that keeps its messages."""

    async def __call__(self, message):
        self.append(message)


def make_gate(inner, *, reachable=True, deadline=5, state=None):
    state = state or State()
    state.database_reachable = reachable
    return RequestGate(inner, state, refuse, deadline)


@asynccontextmanager
async def in_background(*calls, seconds=0.05):
    """Start calls, continue after `seconds`, and cancel the calls at the end."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(seconds)
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def request(inner, *, reachable=True, path="/api/v1/switches/", deadline=0.2, pieces=(b"",)):
    """Return the messages that the caller got, and the seconds they took."""
    sent, waiting = Sent(), list(pieces)

    async def receive():
        if not waiting:
            await asyncio.sleep(10)  # As a server does until the caller leaves.
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    async def run():
        gate = make_gate(inner, reachable=reachable, deadline=deadline)
        await gate({**SCOPE, "path": path}, receive, sent)
        await asyncio.sleep(0.05)

    started = time.monotonic()
    asyncio.run(run())
    return sent, time.monotonic() - started


async def answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"fine"})


async def receive():
    """An empty body."""
    return {"type": "http.request", "body": b"", "more_body": False}


async def hang(scope, receive, send):
    try:
        await asyncio.sleep(10)
    finally:
        await answer(scope, receive, send)


async def hang_forever(_scope, _receive, _send):
    await asyncio.sleep(10)


async def slow_after_start(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await asyncio.sleep(0.5)
    await send({"type": "http.response.body", "body": b"late"})


async def read_all(scope, receive, send):
    while (await receive())["more_body"]:
        pass
    await answer(scope, receive, send)


async def break_down(scope, receive, send):
    raise ValueError("nobody foresaw this")


def test_with_a_database_requests_pass():
    sent, _ = request(answer)

    assert [message.get("status") for message in sent] == [200, None]


def test_without_a_database_requests_are_refused_at_once():
    sent, seconds = request(hang, reachable=False)

    assert sent[0]["status"] == 503
    assert seconds < 0.15


@pytest.mark.parametrize(
    "path",
    ["/static/css/x.css", "/health/ready", "/metrics", "/metrics/", "/docs", "/docs/operate/"],
)
def test_what_needs_no_database_passes_without_one(path):
    sent, _ = request(answer, reachable=False, path=path)

    assert sent[0]["status"] == 200


@pytest.mark.parametrize("path", ["/docsx", "/metricsx", "/statics", "/healthy", "/api/docs/"])
def test_path_with_an_exempt_prefix_is_refused(path):
    sent, _ = request(answer, reachable=False, path=path)

    assert sent[0]["status"] == 503


def test_an_answer_that_does_not_begin_in_time_is_given_up_and_says_nothing_more():
    sent, seconds = request(hang)

    assert [message.get("status") for message in sent] == [503, None]
    assert seconds < 1


def test_an_answer_that_has_begun_may_take_longer():
    sent, _ = request(slow_after_start)

    assert sent[-1]["body"] == b"late"


def test_what_breaks_inside_breaks_outside():
    with pytest.raises(ValueError, match="nobody foresaw"):
        request(break_down)


def test_a_body_within_the_limit_passes_in_pieces():
    sent, _ = request(read_all, pieces=[b"x" * 1024] * 64)

    assert sent[0]["status"] == 200


def test_an_endless_body_is_refused_once_it_is_over_the_limit():
    sent, _ = request(read_all, pieces=[b"x" * MAX_BODY_BYTES, b"x", b"x" * 5000])

    assert [message.get("status") for message in sent] == [413, None]


def test_a_body_whose_last_piece_is_over_the_limit_is_refused_without_waiting_for_more():
    sent, seconds = request(read_all, pieces=[b"x" * MAX_BODY_BYTES, b"x"])

    assert sent[0]["status"] == 413
    assert seconds < 0.5


def test_a_body_that_does_not_arrive_in_time_is_told_so_and_nothing_runs(monkeypatch):
    monkeypatch.setattr(request_body, "READ_SECONDS", 0.05)

    async def receive():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    for path in ("/api/v1/switches/", "/static/x.css", "/metrics"):
        assert request_by(receive, path)[0]["status"] == 408


def test_a_body_that_breaks_off_is_the_callers_mistake():
    async def receive():
        return {"type": "http.disconnect"}  # The server also sends this for a malformed chunk.

    assert request_by(receive)[0]["status"] == 400


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/switches/global/all/engage",
        "/api/v1/ramps/7/abort",
        "/api/v1/ramps/7/abort/",
        "/ramps/7/abort/",
    ],
)
def test_kill_is_answered_while_a_flood_holds_every_thread_of_ordinary_requests(path):
    hanging = []

    async def inner(scope, receive, send):
        if scope["path"] == "/api/schema/":
            hanging.append(scope)
            await asyncio.sleep(10)
        await answer(scope, receive, send)

    async def run():
        gate, sent = make_gate(inner), Sent()
        ordinary = {**SCOPE, "path": "/api/schema/"}
        async with in_background(*(gate(ordinary, receive, ignore) for _ in range(150))):
            await gate({**SCOPE, "path": path}, receive, sent)
        return sent

    sent = asyncio.run(run())

    assert sent[0]["status"] == 200
    assert len(hanging) == ORDINARY.strangers


async def ignore(_message):
    pass


async def read_slowly(message):
    if message["type"] == "http.response.body":
        await asyncio.sleep(10)


def request_by(receive, path="/api/v1/switches/"):
    """Return the messages sent to a caller whose body comes by `receive`."""
    sent = Sent()
    asyncio.run(make_gate(break_down)({**SCOPE, "path": path}, receive, sent))
    return sent


def test_a_websocket_is_closed_and_never_reaches_what_is_behind():
    sent = Sent()

    async def receive():
        return {"type": "websocket.connect"}

    asyncio.run(RequestGate(break_down, State(), refuse)({"type": "websocket"}, receive, sent))

    assert sent == [{"type": "websocket.close"}]


def test_large_hook_of_a_known_token_fits_beside_strangers_whose_bodies_never_end():
    path, large = "/api/v1/hooks/alertmanager", b"x" * (1024 * 1024)

    def receiving(*, ends):
        pieces = [{"type": "http.request", "body": large, "more_body": not ends}]

        async def receive():
            if not pieces:
                await asyncio.sleep(10)
            return pieces.pop()

        return receive

    async def run():
        gate, sent = make_gate(answer, state=plane().state), Sent()
        unknown = {**SCOPE, "path": path}
        flood = [gate(unknown, receiving(ends=False), ignore) for _ in range(140)]
        async with in_background(*flood):
            await gate({**unknown, "headers": TOKEN}, receiving(ends=True), sent)
        return sent

    assert asyncio.run(run())[0]["status"] == 200


def read_metrics(gate):
    """Return the nonzero metrics as {(metric, bulkhead): value}."""
    return {
        (sample.name.removeprefix("switchgear_web_bulkhead_"), sample.labels["bulkhead"]): value
        for family in gate.metrics()
        for sample in family.samples
        if "bulkhead" in sample.labels and (value := sample.value)
    }


@pytest.mark.parametrize(
    ("size", "bulkhead", "running"),
    [(MAX_BODY_BYTES, "kill", 2), (MAX_BODY_BYTES + 1, "ordinary", 4)],
)
def test_hook_takes_a_thread_of_kills_only_if_it_is_small(size, bulkhead, running):
    async def receive():
        return {"type": "http.request", "body": b"x" * size, "more_body": False}

    async def run():
        gate = make_gate(hang_forever, state=plane().state)
        hook = {**SCOPE, "path": "/api/v1/hooks/alertmanager", "headers": TOKEN}
        async with in_background(*(gate(hook, receive, ignore) for _ in range(5))):
            return read_metrics(gate)

    assert asyncio.run(run()) == {
        ("in_flight", bulkhead): running,
        ("queued", bulkhead): 5 - running,
    }


def test_refused_requests_are_counted(monkeypatch):
    monkeypatch.setattr(gate_module, "REFUSAL_SECONDS", 0)
    monkeypatch.setattr(bulkhead, "MAX_WAITING_EACH", 1)

    async def run():
        gate = make_gate(hang_forever)
        async with in_background(*(gate(SCOPE, receive, ignore) for _ in range(10))):
            return read_metrics(gate)

    assert asyncio.run(run()) == {
        ("in_flight", "ordinary"): ORDINARY.strangers,
        ("queued", "ordinary"): 1,
        ("refused_total", "ordinary"): 10 - ORDINARY.strangers - 1,
    }


def test_answers_that_nobody_reads_give_their_threads_back(monkeypatch):
    monkeypatch.setattr(gate_module, "UNREAD_SECONDS", 0.05)

    async def run():
        gate, sent = make_gate(answer), Sent()
        unread = [gate(SCOPE, receive, read_slowly) for _ in range(ORDINARY.strangers)]
        flood = asyncio.gather(*unread)
        await asyncio.sleep(0)
        await gate(SCOPE, receive, sent)
        flood.cancel()
        return sent

    assert asyncio.run(run())[0]["status"] == 200


def test_slow_readers_of_exports_leave_threads_for_others():
    async def run():
        gate, sent = make_gate(answer), Sent()
        path = "/api/v1/audit/export"
        scopes = [{**SCOPE, "path": path, "client": (f"10.0.0.{n}", 1)} for n in (1, 1, 2, 3)]
        slow = (gate(scope, receive, read_slowly) for scope in scopes)
        async with in_background(*slow, seconds=0.01):
            deadline = time.monotonic() + 5
            running = 0
            # More are in flight until those that will be refused have looked.
            while running != gate_module.MAX_EXPORTS and time.monotonic() < deadline:
                running = read_metrics(gate)["in_flight", "ordinary"]
                await asyncio.sleep(0.01)
            await gate(scopes[0], receive, sent)
            await gate(scopes[3], receive, sent)
        await gate(scopes[0], receive, sent)
        return running, [message["status"] for message in sent if "status" in message]

    assert asyncio.run(run()) == (gate_module.MAX_EXPORTS, [429, 503, 200])
