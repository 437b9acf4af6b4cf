"""A real HTTP server that behaves like Slack, or misbehaves as it is told."""

import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeSlack:
    """Answers each request by the next step of its script, and well once that has run out.

    Steps: `ok`, `hang`, `reset`, `drip`, an HTTP status as text, `ok:false CODE`,
    `429 RETRY-AFTER`, `slow SECONDS`, `text STATUS BODY`.
    """

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        self.script: list[str] = []
        self.always = "ok"
        self.requests: list[dict] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()

    def note(self, handler: BaseHTTPRequestHandler, body: bytes) -> str:
        with self._lock:
            self.requests.append(
                {
                    "path": handler.path,
                    "authorization": handler.headers.get("Authorization"),
                    "json": json.loads(body),
                    "at": time.monotonic(),
                }
            )
            return self.script.pop(0) if self.script else self.always

    @property
    def texts(self) -> list[str]:
        return [request["json"]["text"] for request in self.requests]


@contextmanager
def fake_slack() -> Iterator[FakeSlack]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.slack = FakeSlack(server)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.slack
    finally:
        server.slack.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        slack = self.server.slack
        body = self.rfile.read(int(self.headers["Content-Length"]))
        step, *arguments = slack.note(self, body).split(" ", 2)
        getattr(self, f"step_{step.replace(':', '_')}", self.step_status)(step, *arguments)

    def step_ok(self, *_: str) -> None:
        self._answer(200, {"ok": True, "ts": "1.2"})

    def step_ok_false(self, _step: str, code: str) -> None:
        self._answer(200, {"ok": False, "error": code})

    def step_429(self, _step: str, *after: str) -> None:
        self._answer(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": " ".join(after)})

    def step_text(self, _step: str, status: str, text: str) -> None:
        self._send(int(status), text.encode(), {})

    def step_status(self, step: str) -> None:
        self._send(int(step), b"<html>sorry</html>", {})

    def step_slow(self, _step: str, seconds: str) -> None:
        time.sleep(float(seconds))
        self.step_ok()

    def step_hang(self, *_: str) -> None:
        self.server.slack.closing.wait(60)
        self.close_connection = True

    def step_drip(self, *_: str) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
        self.close_connection = True
        while not self.server.slack.closing.wait(0.1):
            try:
                self.wfile.write(b".")
            except OSError:
                return

    def step_reset(self, *_: str) -> None:
        now = struct.pack("ii", 1, 0)  # Linger for no time: the peer gets a reset.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
        self.close_connection = True
        self.connection.close()

    def _answer(self, status: int, document: dict, headers: dict | None = None) -> None:
        self._send(status, json.dumps(document).encode(), headers or {})

    def _send(self, status: int, body: bytes, headers: dict) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ValueError):
            self.close_connection = True

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()
