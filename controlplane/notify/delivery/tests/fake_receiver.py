"""An HTTP server that receives webhooks and answers by a script."""

import base64
import hashlib
import hmac
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer

from .certificate import certificate
from .fake_server import QuietHandler, serving


class FakeReceiver:
    """A receiver that answers each request by the next step of its script, then with 200.

    Steps: an HTTP status as text, `STATUS HEADER VALUE`, `hang`, `flood`.
    """

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self.port = server.server_address[1]
        self.script: list[str] = []
        self.requests: list[dict] = []
        self.server_names: list[str | None] = []
        self.closing = threading.Event()

    @property
    def seen(self) -> set[str]:
        """The ids of the messages, without repeats."""
        return {request["headers"]["webhook-id"] for request in self.requests}


def verified(request: dict, secret: str) -> bool:
    """Return whether a request's signature is valid; independent of the sender's code."""
    headers = request["headers"]
    key = base64.b64decode(secret.split("_", 1)[1])
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + request["body"]
    expected = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in headers["webhook-signature"].split(" ")


def trusting() -> ssl.SSLContext:
    """Return a context that trusts this server's certificate only."""
    return ssl.create_default_context(cafile=str(certificate()))


@contextmanager
def fake_receiver(*, tls: bool = False) -> Iterator[FakeReceiver]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.receiver = FakeReceiver(server)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate())
        context.sni_callback = lambda _socket, name, _context: server.receiver.server_names.append(
            name
        )
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with serving(server):
        try:
            yield server.receiver
        finally:
            server.receiver.closing.set()


class _Handler(QuietHandler):
    def do_POST(self) -> None:
        receiver = self.server.receiver
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        receiver.requests.append(
            {"path": self.path, "headers": headers, "body": body, "json": json.loads(body)}
        )
        step, _, header = (receiver.script.pop(0) if receiver.script else "200").partition(" ")
        if step == "hang":
            receiver.closing.wait(60)
            self.close_connection = True
        elif step == "flood":
            self._flood()
        else:
            name, _, value = header.partition(" ")
            self.send_response(int(step))
            if name:
                self.send_header(name, value)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    def _flood(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(10**12))
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):
            while not self.server.receiver.closing.is_set():
                self.wfile.write(b"x" * 65536)
