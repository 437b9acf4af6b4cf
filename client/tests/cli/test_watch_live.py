"""`watch` reads anew what a live socket leaves out, and when it breaks."""

import contextlib
import json
from contextlib import contextmanager
from http import HTTPStatus
from threading import Thread

import pytest
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response
from websockets.sync.server import serve

from tests.cli.shell import Shell
from tests.cli.test_watch import watching

pytestmark = pytest.mark.timeout(120)
AWAY = (503, {"detail": "The database does not respond.", "status": 503})


def level(cause):
    return {"level": 2, "name": "critical", "causes": [cause]}


def hello(stream="one", seq=1):
    return {"topic": "hello", "stream": stream, "seq": {"degradation": seq}, "live": True}


def message(seq, cause, event="degradation.changed"):
    at = "2026-11-22T14:00:00Z"
    return {"topic": "degradation", "event": event, "seq": seq, "at": at, "data": level(cause)}


@contextmanager
def live(answers, *sockets):
    """Run a console with scripted answers and sockets.

    Each socket sends its messages and ends; the last one stays open.
    """
    scripts = [list(one) for one in sockets]

    def answer(_socket, request):
        if request.path == "/ws/live/":
            return None
        reply = answers.pop(0) if len(answers) > 1 else answers[0]
        status, document = reply if isinstance(reply, tuple) else (200, reply)
        body = json.dumps(document).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)),
                   "Connection": "close"}  # fmt: skip
        return Response(status, HTTPStatus(status).phrase, Headers(headers), body)

    def talk(socket):
        stays = len(scripts) == 1
        for message in scripts[0] if stays else scripts.pop(0):
            socket.send(json.dumps(message))
        if stays:
            with contextlib.suppress(ConnectionClosed):
                socket.recv()

    with serve(talk, "127.0.0.1", 0, process_request=answer) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Shell(f"http://127.0.0.1:{server.socket.getsockname()[1]}")
        server.shutdown()
        thread.join(10)


def complaints(watch, count):
    """The first so many lines on standard error."""
    return [watch.process.stderr.readline().rstrip() for _ in range(count)]


def ended(watch):
    watch.interrupt()
    return watch.process.stderr.read()


@pytest.mark.parametrize("last", [message(3, "told"), message(None, "", "resync")])
def test_what_was_missed_is_read_again_until_it_can_be(last):
    answers = [level("at first"), AWAY, level("missed")]
    with live(answers, [hello(), last]) as shell, watching(shell, "degradation") as watch:
        watch.read_until("at first")
        watch.read_until("missed")

        notes = complaints(watch, 2)

    assert notes == ["Live updates off: The database does not respond.", "Live updates resumed."]


def test_first_read_that_fails_is_tried_again_and_nothing_is_called_live_before():
    with live([AWAY, level("found")], [hello()]) as shell, watching(shell, "degradation") as watch:
        watch.read_until("found")

        said = complaints(watch, 2)

    assert said == ["Live updates off: The database does not respond.", "Live updates resumed."]


def test_next_socket_may_count_from_the_beginning_and_json_says_when_it_is_not_live():
    sockets = [hello(seq=50), message(51, "before")], [hello("two"), message(2, "after")]
    answers = [level("at first")]
    with live(answers, *sockets) as shell, watching(shell, "degradation", "--json") as watch:
        watch.read_until("before")
        watch.read_until("after")

        notes = [json.loads(line)["note"] for line in ended(watch).splitlines()]

    assert notes[0].startswith("Live updates off: the WebSocket was closed")
    assert notes[-1] == "Live updates resumed."


@pytest.mark.parametrize(
    "strange", [{"topic": "degradation"}, {"topic": "hello"}, message(2, "") | {"data": 1}]
)
def test_message_of_another_shape_ends_the_socket_and_not_the_watching(strange):
    sockets = [hello(), strange], [hello("two"), message(2, "after")]
    with live([level("at first")], *sockets) as shell, watching(shell, "degradation") as watch:
        watch.read_until("after")

        assert "Traceback" not in ended(watch)


def test_topics_that_the_token_may_not_watch_are_named():
    with live([level("at first")], [hello()]) as shell, watching(shell) as watch:
        watch.read_until("at first")

        assert "Not watching switches, ramps, breakers, dlq, slo" in ended(watch)
