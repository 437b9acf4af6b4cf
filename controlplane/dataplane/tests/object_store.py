"""A real HTTP server of one object, to which data planes publish the snapshot."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class ObjectStore:
    """A server of one object, with GET, PUT and ETags."""

    url: str = ""
    content: bytes | None = None
    status: int = 0
    """The status of every answer; 0 to work."""
    asked: list[tuple[str, int, dict[str, str]]] = field(default_factory=list)


@contextlib.contextmanager
def object_store() -> Iterator[ObjectStore]:
    there = ObjectStore()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            tag = f'"{hash(there.content)}"'
            is_known = self.headers["If-None-Match"] == tag
            status = there.status or (404 if there.content is None else 304 if is_known else 200)
            self._answer(status, (there.content or b"") if status == 200 else b"", tag)

        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if not there.status:
                there.content = content
            self._answer(there.status or 201, b"", "")

        def _answer(self, status: int, body: bytes, tag: str) -> None:
            there.asked.append((self.command, status, dict(self.headers.items())))
            self.send_response(status)
            if tag:
                self.send_header("ETag", tag)
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            """Write nothing to the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there.url = f"http://127.0.0.1:{server.server_address[1]}/bucket/snapshot.json?key=hunter2"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield there
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
