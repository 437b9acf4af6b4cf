"""A server that answers instant queries as a test says, over real HTTP."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Fake:
    """A fake Prometheus.

    `values` are functions by query, from a time to a number, None (no series), or raw bytes;
    `status` and `hangs` (seconds) apply to all. `requests` lists (query, time).
    """

    def __init__(self):
        self.values = {}
        self.status = 200
        self.hangs = 0.0
        self.requests = []
        self.paths = []
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        self.port = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def says(self, **values):
        """Set constants or functions of the time, by query."""
        for query, value in values.items():
            self.values[query] = value if callable(value) else lambda at, value=value: value

    def answer(self, path):
        parts = urlsplit(path)
        parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
        query, at = parameters["query"], int(parameters["time"])
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            self.paths.append(parts.path)
            self.requests.append((query, at))
        time.sleep(self.hangs)
        with self._lock:
            self._now -= 1
        value = self.values[query](at)
        return value if isinstance(value, bytes) else json.dumps(vector(value, at)).encode()


def vector(value, at):
    """Return a successful response with no series, one, or as many as the list has."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    result = [{"metric": {"n": str(n)}, "value": [at, str(one)]} for n, one in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


@contextmanager
def fake_prometheus() -> Iterator[Fake]:
    fake = Fake()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # Head and body in one packet: the second would wait for an ACK of the first.

        def do_GET(self):
            body = fake.answer(self.path)
            self.send_response(fake.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
