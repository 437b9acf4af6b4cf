"""Servers with answers of any shape, without an end, or leading elsewhere: each is reported."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ofrep_conformance.manifest import parse_manifest
from ofrep_conformance.registry import Verdict
from ofrep_conformance.runner import run_checks

FLAGS = [{"key": "a", "value": True}]
ONLY = (
    *("single.known-reason", "single.no-error", "errors.not-found-body", "errors.failure-body"),
    *("bulk.entries", "configuration.shape", "events.connect", "events.first-event"),
)


class Handler(BaseHTTPRequestHandler):
    server: "Hostile"

    def do_GET(self) -> None:
        self.server.headers_seen.append(dict(self.headers.items()))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        try:
            for part in self.server.parts:
                self.wfile.write(part)
                time.sleep(self.server.pause_seconds)
        except OSError:
            self.close_connection = True

    do_POST = do_GET

    def log_message(self, *_arguments: object) -> None:
        pass


class Hostile(ThreadingHTTPServer):
    daemon_threads = True
    parts: tuple[bytes, ...] = ()
    pause_seconds = 0.0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.headers_seen: list[dict[str, str]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serve(*parts: bytes, pause_seconds: float = 0.0) -> Iterator[Hostile]:
    with Hostile() as server:
        server.parts, server.pause_seconds = parts, pause_seconds
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    "body",
    [
        b'{"key": "a", "value": true, "reason": []}',
        b'{"key": "a", "errorCode": [], "errorDetails": {}}',
        b'{"flags": [{"key": "a", "errorCode": {}}]}',
        b'{"capabilities": {"flagEvaluation": {"supportedTypes": [[1]]}}}',
        b'{"capabilities": {"flagEvaluation": {"supportedTypes": 7}}}',
        b'{"capabilities": {"flagEvaluation": 7}}',
        b'{"flags": [], "eventStreams": [{"type": "sse", "url": "http://[bad"}]}',
        b'{"flags": [], "eventStreams": [{"type": "sse", "url": "http://127.0.0.1:99999999/"}]}',
        b'{"flags": [], "eventStreams": [{"type": "sse", "url": "http://127.0.0.1:x y/"}]}',
        b"[" * 100_000,
    ],
)
def test_response_of_any_shape_is_reported(body: bytes) -> None:
    with serve(body) as server:
        manifest = parse_manifest({"flags": FLAGS, "timeout": 2.0}, server.url)

        results = list(run_checks(manifest, ONLY))

    assert len(results) == len(ONLY)
    assert Verdict.FAILED in {result.verdict for result in results}


def test_response_that_never_ends_takes_no_longer_than_the_timeout() -> None:
    with serve(*[b" "] * 200, pause_seconds=0.05) as server:
        manifest = parse_manifest({"flags": FLAGS, "timeout": 0.3}, server.url)
        started = time.monotonic()

        (result,) = run_checks(manifest, ["bulk.status"])

    assert time.monotonic() - started < 5
    assert "no response in time" in result.details[0]


def test_stream_of_another_origin_gets_no_headers_of_the_manifest() -> None:
    with serve(b"data: {}\n\n") as other:
        stream = {"type": "sse", "url": f"{other.url}/events"}
        body = json.dumps({"flags": [], "eventStreams": [stream]}).encode()
        with serve(body) as server:
            headers = {"X-Team-Token": "secret", "Authorization": "Bearer secret"}
            manifest = parse_manifest({"headers": headers}, server.url)

            list(run_checks(manifest, ["events.connect"]))

    assert server.headers_seen[0]["X-Team-Token"] == "secret"
    assert not headers.keys() & other.headers_seen[0].keys()
