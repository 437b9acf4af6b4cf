"""Running the command as a shell does, and a console whose answers are written down before."""

import contextlib
import io
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest import mock

from switchgear.cli import main
from tests.cli.quick_cli import INTERVALS

TOKEN = "sg_test_a-secret-that-is-told-to-nobody"
CLOSE = object()
"""Instead of an answer: the connection ends."""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def problem(self) -> Any:
        return json.loads(self.err)


@dataclass(frozen=True)
class Shell:
    """The console and token that commands run with."""

    url: str | None
    token: str | None = TOKEN

    def __call__(self, *arguments: str) -> Ran:
        settings = {"SWITCHGEAR_URL": self.url, "SWITCHGEAR_TOKEN": self.token, "COLUMNS": "100"}
        environment = {name: value for name, value in settings.items() if value is not None}
        out, err = io.StringIO(), io.StringIO()
        cleared = {k: v for k, v in os.environ.items() if k not in settings}
        with (
            mock.patch.dict(os.environ, {**cleared, **environment}, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                code = main(arguments, INTERVALS)
            except SystemExit as end:
                code = int(end.code or 0)
        return Ran(code, out.getvalue(), err.getvalue())


@dataclass
class Scripted:
    """A console with scripted answers by method and path, the last of which repeats.

    `asked` are its requests: (method, path, headers, body).
    """

    url: str = ""
    answers: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)

    def answer(self, method: str, path: str, *answers: Any) -> None:
        """Script answers: a document, (status, document), (status, headers, bytes), or CLOSE."""
        self.answers[method, path] = list(answers)

    def next(self, method: str, path: str) -> Any:
        scripted_answer = self.answers.get((method, path.partition("?")[0]))
        if not scripted_answer:
            return 404, {"detail": f"nothing at {path}", "status": 404}
        return scripted_answer.pop(0) if len(scripted_answer) > 1 else scripted_answer[0]


@contextlib.contextmanager
def scripted() -> Iterator[Scripted]:
    console = Scripted()

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            console.asked.append((self.command, self.path, dict(self.headers), body))
            said = console.next(self.command, self.path)
            if said is CLOSE:
                self.close_connection = True
                return
            status, headers, content = _complete(said)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *_arguments: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    console.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield console
    finally:
        server.shutdown()
        server.server_close()


def _complete(answer: Any) -> tuple[int, dict[str, str], bytes]:
    if isinstance(answer, tuple) and len(answer) == 3:
        return answer
    status, document = answer if isinstance(answer, tuple) else (200, answer)
    kind = "application/json" if status < 400 else "application/problem+json"
    return status, {"Content-Type": kind}, json.dumps(document).encode()
