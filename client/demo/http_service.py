"""A small JSON service over HTTP on loopback, with an endpoint that injects faults.

`POST /faults` with `{"errors": 0.3, "delay_ms": 800}` injects a fault, `DELETE /faults` removes it,
`GET /faults` returns it.
"""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from demo import faults
from demo.faults import Faults, InjectedFailure, WrongFault
from demo.world import HOST
from switchgear import Decision, SwitchEngaged
from switchgear.llm.providers import ProviderUnavailable
from switchgear.patterns.propagation import incoming

MAX_BYTES = 64 * 1024
IDLE_SECONDS = 30
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
FAULTS_PATH = "/faults"

Body = Mapping[str, Any]


@dataclass(frozen=True)
class ServiceResponse:
    """A response; `body` is a JSON object, or text of the media type `text_type`."""

    status: int
    body: Body | str
    headers: Mapping[str, str] = field(default_factory=dict)
    text_type: str = "text/html"


Handler = Callable[[Body], ServiceResponse]


def get_user(question: Body) -> str:
    return str(question.get("user"))


def refuse_call(decision: Decision) -> ServiceResponse:
    """Return the error response to a call that a kill switch stops."""
    body = {"error": "switched off", "switch": decision.switch, "reason": decision.reason}
    return ServiceResponse(503, body)


class FaultyService:
    """A demo service's HTTP handlers by method and path, with fault injection.

    An injected failure becomes status 500, a call stopped by a switch 503. If no provider is
    available, the status is the one that the console configures for that.
    """

    def __init__(self, routes: Mapping[tuple[str, str], Handler], broken: Faults) -> None:
        self.faults = broken
        self._routes: dict[tuple[str, str], Handler] = {
            **routes,
            ("GET", FAULTS_PATH): lambda _: self._show_fault(),
            ("POST", FAULTS_PATH): self._inject_fault,
            ("DELETE", FAULTS_PATH): lambda _: self._inject_fault({}),
        }

    def answer(self, method: str, path: str, body: Body) -> ServiceResponse | None:
        """Return the response, or None to close the connection while the service is down."""
        handler = self._routes.get((method, path))
        if handler is None:
            return ServiceResponse(404, {"error": f"there is no {method} {path}"})
        if self.faults.present.down and path in _WORK:
            return None
        try:
            return handler(body)
        except SwitchEngaged as stopped:
            return refuse_call(stopped.decision)
        except InjectedFailure as error:
            return ServiceResponse(500, {"error": str(error)})
        except ProviderUnavailable as error:
            return ServiceResponse(error.status, {"error": str(error), "code": error.code})

    def _show_fault(self) -> ServiceResponse:
        return ServiceResponse(200, asdict(self.faults.present))

    def _inject_fault(self, body: Body) -> ServiceResponse:
        try:
            self.faults.inject(faults.parse_fault(body))
        except WrongFault as problem:
            return ServiceResponse(400, {"error": str(problem)})
        return self._show_fault()


_WORK = ("/ask", "/answer", "/lookup")


def serve(service: FaultyService, port: int) -> None:
    """Serve until SIGTERM or Ctrl-C; must be called in the main thread."""
    ended = threading.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: ended.set())
    with run_service(service, port):
        ended.wait()


@contextmanager
def run_service(service: FaultyService, port: int = 0, poll_seconds: float = 0.1) -> Iterator[int]:
    """Context manager: serve in a thread during the block; yields the port (0 picks a free one)."""
    server = _Server((HOST, port), type("Handler", (_Handling,), {"answers": service}))
    threading.Thread(target=server.serve_forever, args=(poll_seconds,), daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handling(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True  # Else a body waits 40 ms for the headers to be acknowledged.
    answers: FaultyService

    def _handle(self) -> None:
        try:
            body_type, body = self._body()
        except (ValueError, RecursionError):
            self._send(ServiceResponse(400, {"error": "send a JSON object"}))
            return
        if not self._is_ours():
            self._send(ServiceResponse(403, {"error": "allowed from this machine only"}))
            return
        path = urlsplit(self.path).path
        if path == FAULTS_PATH and body_type not in (None, JSON):
            error = f"send a JSON object with the header Content-Type: {JSON}"
            self._send(ServiceResponse(415, {"error": error}))
            return
        answer: ServiceResponse | None
        with incoming(self.headers.items(), trusts_attempt=True) as call:
            if call.is_over:
                answer = ServiceResponse(504, {"error": "the caller's deadline has passed"})
            else:
                answer = self.answers.answer(self.command, path, body)
        if answer is None:
            self.close_connection = True
        else:
            self._send(answer)

    do_GET = do_POST = do_DELETE = _handle

    def _body(self) -> tuple[str | None, Body]:
        """Return the body with its content type, which is None without a body."""
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= MAX_BYTES:
            self.close_connection = True
            raise ValueError(length)
        text = self.rfile.read(length)
        kind = self.headers.get_content_type() if text else None
        if kind == FORM:
            return kind, dict(parse_qsl(text.decode()))
        found = json.loads(text or b"{}")
        if not isinstance(found, dict):
            raise ValueError(type(found))
        return kind, found

    def _is_ours(self) -> bool:
        """Return True if the request is for loopback, and not from a page of another site."""
        host = self.headers.get("Host", "")
        origin = self.headers.get("Origin")
        by_name = urlsplit(f"//{host}").hostname in (HOST, "localhost")
        return by_name and origin in (None, f"http://{host}")

    def _send(self, answer: ServiceResponse) -> None:
        if isinstance(answer.body, str):
            content, kind = answer.body, f"{answer.text_type}; charset=utf-8"
        else:
            content, kind = json.dumps(answer.body), JSON
        data = content.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass
