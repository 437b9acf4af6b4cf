"""The requests that the benchmark compares, each with the server that answers it."""

import json
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from .http_client import SNAPSHOT
from .servers import BARE, HOST, PLANE, WEB, ServerUnderTest, running
from .wrk import LoadTarget

SWITCHES = "/api/v1/switches/"
ADDED_BY_GRANIAN = {"date", "server"}


@dataclass(frozen=True)
class RecordedResponse:
    """A response as received."""

    status: int
    headers: list[tuple[str, str]]
    body: str


def serve(stack: ExitStack, core: int, loop: str, token: str, folder: Path) -> list[LoadTarget]:
    """Start the servers; return the requests to measure, in the order of the printed rows."""
    plane = stack.enter_context(running(PLANE, core=core, loop=loop))
    web = stack.enter_context(running(WEB, core=core, loop=loop))
    bearer = {"Authorization": f"Bearer {token}"}
    answers = record(plane, token, folder)
    known = {**bearer, "If-None-Match": dict(_request(plane, SNAPSHOT, bearer).headers)["etag"]}
    bare = stack.enter_context(running(BARE, core=core, loop=loop, answers=answers))
    return [
        LoadTarget("bare ASGI, the same 304", bare, "/304", known, 304),
        LoadTarget("snapshot 304", plane, SNAPSHOT, known, 304),
        LoadTarget("snapshot 304, in the web process", web, SNAPSHOT, known, 304),
        LoadTarget("bare ASGI, the same 200", bare, "/200", bearer, 200),
        LoadTarget("snapshot 200, 100 engaged", plane, SNAPSHOT, bearer, 200),
        LoadTarget("DRF view, GET /api/v1/switches/", web, SWITCHES, bearer, 200),
    ]


def record(plane: ServerUnderTest, token: str, folder: Path) -> Path:
    """Write the data plane's responses to a file, from which the bare applications send them."""
    bearer = {"Authorization": f"Bearer {token}"}
    found = _request(plane, SNAPSHOT, bearer)
    unchanged = _request(plane, SNAPSHOT, {**bearer, "If-None-Match": dict(found.headers)["etag"]})
    answers = folder / "answers.json"
    answers.write_text(json.dumps({"/304": _plain(unchanged), "/200": _plain(found)}))
    return answers


def verify(target: LoadTarget) -> None:
    """Send the target's request once; end the run unless it gets the expected status."""
    status = _request(target.server, target.path, dict(target.headers)).status
    if status != target.status:
        raise SystemExit(f"bench: {target.name}: status {status}, not {target.status}")


def _request(server: ServerUnderTest, path: str, headers: dict[str, str]) -> RecordedResponse:
    connection = HTTPConnection(HOST, server.port, timeout=10)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    pairs = [(name.lower(), value) for name, value in response.getheaders()]
    said = RecordedResponse(response.status, pairs, response.read().decode())
    connection.close()
    return said


def _plain(said: RecordedResponse) -> tuple[int, list[tuple[str, str]], str]:
    kept = [pair for pair in said.headers if pair[0] not in ADDED_BY_GRANIAN]
    return said.status, kept, said.body
