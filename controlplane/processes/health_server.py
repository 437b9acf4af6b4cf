"""HTTP server for the probes and metrics of worker, beat and watchdog, on an internal port."""

import json
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import structlog

from controlplane.core import health, metrics
from controlplane.core.health import Report
from controlplane.core.liveness import Crew, Loop

ANSWER_SECONDS = 5

log = structlog.get_logger(__name__)


def serve_probes(port: int, *, loop: Loop, crew: Crew | None = None, needs_redis: bool) -> None:
    """Serve health probes and metrics on `port` in background threads; do nothing if it is 0.

    Exits the process with status 2 if the port can't be opened.
    """
    if port == 0:
        return
    reports: Mapping[str, Callable[[], Report]] = {
        "/health/startup": health.report_startup,
        "/health/live": partial(_report_liveness, loop, crew),
        "/health/ready": partial(health.report_worker_readiness, needs_redis=needs_redis),
    }
    handler = type("Handler", (_Handler,), {"reports": reports, "loop": loop})
    try:
        server = ThreadingHTTPServer(("", port), handler)
    except OSError as error:
        sys.stderr.write(f"HEALTH_PORT: {port}: {error.strerror}\n")
        sys.exit(2)
    threading.Thread(target=server.serve_forever, daemon=True, name="health").start()


def _report_liveness(loop: Loop, crew: Crew | None) -> Report:
    """Return the liveness report: 503 if the main loop or all worker threads hang, else 200."""
    if loop.hangs() or (crew is not None and crew.hangs()):
        log.error("probe_liveness_failed", rested_seconds=round(loop.rested_seconds, 1))
        return Report(503, {"status": "hangs"})
    return health.report_liveness()


class _Handler(BaseHTTPRequestHandler):
    reports: Mapping[str, Callable[[], Report]]
    loop: Loop
    timeout = ANSWER_SECONDS
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "switchgear", ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].rstrip("/")
        if path == "/metrics":
            content, kind = metrics.process_exposition(self.headers.get("Accept", ""), self.loop)
            self._answer(200, content, kind)
        elif path in self.reports:
            report = self.reports[path]()
            content = json.dumps(dict(report.document)).encode()
            self._answer(report.http_status, content, "application/json")
        else:
            self._answer(404, b"", "text/plain")

    do_HEAD = do_GET

    def _answer(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass  # Probes come every few seconds.
