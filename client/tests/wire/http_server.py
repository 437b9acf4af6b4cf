"""Real HTTP servers of a test's own: they answer as a function says, and keep what was asked."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    """A request. `headers` have lower-case names; `connection` identifies its connection."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int


@dataclass
class Said:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    bits: Iterator[bytes] | None = None
    """Sent one after the other, instead of `body`."""


class Server:
    """`answer` is called in a thread for each request."""

    def __init__(self, answer: Callable[[Asked], Said]) -> None:
        self.asked: list[Asked] = []
        handler = type("Handler", (_Handler,), {"answer": staticmethod(answer), "kept": self.asked})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def serving(answer: Callable[[Asked], Said]) -> Iterator[Server]:
    """A server while it is needed."""
    server = Server(answer)
    try:
        yield server
    finally:
        server.stop()


def in_turn(*said: Said) -> Callable[[Asked], Said]:
    """Give one answer after the other, and repeat the last one."""
    left = list(said)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


class _Handler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    protocol_version = "HTTP/1.1"
    answer: Callable[[Asked], Said]
    kept: list[Asked]

    def _reply(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, body, self.client_address[1])
        self.kept.append(asked)
        said = self.answer(asked)
        with contextlib.suppress(OSError):  # Who asked may be gone.
            self.send_response_only(said.status)
            if "Date" not in said.headers:
                self.send_header("Date", self.date_time_string())
            for name, value in said.headers.items():
                self.send_header(name, value)
            if said.bits is None:
                self.send_header("Content-Length", str(len(said.body)))
                self.end_headers()
                self.wfile.write(said.body)
                return
            self.send_header("Connection", "close")
            self.end_headers()
            for bit in said.bits:
                self.wfile.write(bit)
                self.wfile.flush()
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _reply

    def log_message(self, *_: object) -> None: ...
