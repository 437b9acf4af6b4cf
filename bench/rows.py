"""The HTTP requests whose throughput the benchmark compares, and the servers that answer them."""

import json
from contextlib import ExitStack
from pathlib import Path

from . import fixtures, http_client
from .http_client import SNAPSHOT, fetch
from .servers import BARE, PLANE, WEB, ServerUnderTest, running
from .wrk import LoadTarget

SWITCHES = "/api/v1/switches/"
FROM_RELAY = ", from a relay"
ADDED_BY_GRANIAN = {"date", "server"}


def serve(stack: ExitStack, core: int, loop: str, token: str, folder: Path) -> list[LoadTarget]:
    """Start the servers; return the requests to measure, in the order of the printed rows."""
    plane = stack.enter_context(running(PLANE, core=core, loop=loop))
    relay_folder = folder / "relay"
    relay_folder.mkdir()
    relay_variables = {
        "SWITCHGEAR_UPSTREAM": plane.url,
        "SWITCHGEAR_TOKEN": fixtures.make_token("relay"),
        "SWITCHGEAR_DATA_DIR": str(relay_folder),
    }
    relay = stack.enter_context(running(PLANE, core=core, loop=loop, variables=relay_variables))
    web = stack.enter_context(running(WEB, core=core, loop=loop))
    bearer = http_client.bearer(token)
    answers = record(plane, token, folder)
    known = {**bearer, "If-None-Match": fetch(plane.port, SNAPSHOT, bearer).headers["ETag"]}
    bare = stack.enter_context(running(BARE, core=core, loop=loop, answers=answers))
    return [
        LoadTarget("bare ASGI, the same 304", bare, "/304", known, 304),
        LoadTarget("snapshot 304", plane, SNAPSHOT, known, 304),
        LoadTarget("snapshot 304" + FROM_RELAY, relay, SNAPSHOT, known, 304),
        LoadTarget("snapshot 304, in the web process", web, SNAPSHOT, known, 304),
        LoadTarget("bare ASGI, the same 200", bare, "/200", bearer, 200),
        LoadTarget("snapshot 200, 100 engaged", plane, SNAPSHOT, bearer, 200),
        LoadTarget("snapshot 200, 100 engaged" + FROM_RELAY, relay, SNAPSHOT, bearer, 200),
        LoadTarget("DRF view, GET /api/v1/switches/", web, SWITCHES, bearer, 200),
    ]


def record(plane: ServerUnderTest, token: str, folder: Path) -> Path:
    """Write the data plane's responses to a file, from which the bare applications send them."""
    bearer = http_client.bearer(token)
    found = fetch(plane.port, SNAPSHOT, bearer)
    known = {**bearer, "If-None-Match": found.headers["ETag"]}
    unchanged = fetch(plane.port, SNAPSHOT, known, expected=304)
    answers = folder / "answers.json"
    answers.write_text(json.dumps({"/304": _plain(unchanged), "/200": _plain(found)}))
    return answers


def verify(target: LoadTarget) -> None:
    """Send the target's request once; end the run unless it gets the expected status."""
    fetch(target.server.port, target.path, target.headers, expected=target.status)


def _plain(found: http_client.Fetched) -> tuple[int, list[tuple[str, str]], str]:
    pairs = [(name.lower(), value) for name, value in found.headers.items()]
    kept = [pair for pair in pairs if pair[0] not in ADDED_BY_GRANIAN]
    return found.status, kept, found.body.decode()
