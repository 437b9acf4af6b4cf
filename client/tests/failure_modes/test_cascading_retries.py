"""Three layers that each try three times make 27 calls of one, just when there should be fewer."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from switchgear import Deadline, Retry, RetryParameters, Timeout
from switchgear.patterns.deadline import NoTimeLeft
from switchgear.patterns.propagation import incoming, outgoing

ATTEMPTS = 3

Call = Callable[[], None]


class Away(Exception):
    """The service below did not respond."""

    status = 503


class Layer:
    """A service that calls the one below it for every request, or fails without one."""

    def __init__(self, below: Call | None) -> None:
        self._below = below
        self.asked = 0

    def answer(self) -> int:
        self.asked += 1
        try:
            if self._below is None:
                raise Away
            self._below()
        except Away:
            return 503
        return 200


@contextmanager
def served(layer: Layer) -> Iterator[int]:
    """The port of a service over real HTTP, which takes to heart what headers tell it."""

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            with incoming(self.headers.items(), trusts_attempt=True):
                status = layer.answer()
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def post(port: int, headers: dict[str, str]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/", json.dumps({}), headers)
        if connection.getresponse().status != 200:
            raise Away
    finally:
        connection.close()


def by_hand(port: int) -> Call:
    """Retry as is often done, at every layer."""

    def call() -> None:
        for _ in range(ATTEMPTS - 1):
            try:
                return post(port, {})
            except Away:
                continue
        return post(port, {})

    return call


def with_retry(port: int) -> Call:
    """The same, by the library: also at every layer."""
    return Retry(
        f"to {port}", RetryParameters(attempts=ATTEMPTS, base_seconds=0.01, budget_per_second=100)
    )(lambda: post(port, outgoing()))


def three_layers(stack: ExitStack, make: Callable[[int], Call]) -> tuple[Call, list[Layer]]:
    """Return the topmost service's caller, and all services from the innermost on."""
    layers = [Layer(None)]
    call = make(stack.enter_context(served(layers[0])))
    for _ in range(2):
        layers.append(Layer(call))
        call = make(stack.enter_context(served(layers[-1])))
    return call, layers


@pytest.mark.parametrize(
    ("make", "asked"), [(by_hand, [27, 9, 3]), (with_retry, [3, 3, 3])], ids=["by hand", "ours"]
)
def test_three_layers_make_so_many_calls(make: Callable[[int], Call], asked: list[int]) -> None:
    with ExitStack() as stack:
        call, layers = three_layers(stack, make)

        with pytest.raises(Away):
            call()

        assert [layer.asked for layer in layers] == asked


def test_nobody_is_called_once_there_is_no_time_left() -> None:
    with ExitStack() as stack:
        call, layers = three_layers(stack, with_retry)
        stack.enter_context(Deadline(0.001))
        threading.Event().wait(0.01)

        with pytest.raises(NoTimeLeft):
            Timeout(None)(call)()

        assert [layer.asked for layer in layers] == [0, 0, 0]
