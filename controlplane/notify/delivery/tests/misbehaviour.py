"""Faults of HTTP servers, for fake ones."""

import json
import socket
import struct
import threading
import time


class Misbehaviour:
    """A mixin of request handlers with an event `closing`, set at the end, and `behave()`.

    Steps: `ok`, `hang`, `reset`, `drip`, an HTTP status as text, `ok:false CODE`, `429
    RETRY-AFTER`, `slow SECONDS`, `text STATUS BODY`.
    """

    closing: threading.Event

    def misbehave(self, step: str) -> None:
        name, *arguments = step.split(" ", 2)
        getattr(self, f"step_{name.replace(':', '_')}", self.step_status)(name, *arguments)

    def step_ok(self, *_: str) -> None:
        self.behave()

    def step_ok_false(self, _step: str, code: str) -> None:
        self.send(200, json.dumps({"ok": False, "error": code}).encode())

    def step_429(self, _step: str, *after: str) -> None:
        headers = {"Retry-After": " ".join(after)} if after else {}
        self.send(429, b'{"ok": false, "error": "ratelimited"}', headers)

    def step_text(self, _step: str, status: str, text: str) -> None:
        self.send(int(status), text.encode())

    def step_status(self, step: str) -> None:
        self.send(int(step), b"<html>sorry</html>")

    def step_slow(self, _step: str, seconds: str) -> None:
        time.sleep(float(seconds))
        self.behave()

    def step_hang(self, *_: str) -> None:
        self.closing.wait(60)
        self.close_connection = True

    def step_drip(self, *_: str) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
        self.close_connection = True
        while not self.closing.wait(0.1):
            try:
                self.wfile.write(b".")
            except OSError:
                return

    def step_reset(self, *_: str) -> None:
        now = struct.pack("ii", 1, 0)  # Linger for no time: the peer gets a reset.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
        self.close_connection = True
        self.connection.close()

    def send(self, status: int, body: bytes, headers: dict | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
