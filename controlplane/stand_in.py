"""A data plane that serves the console's port while the web process starts.

It serves the snapshot saved on disk and the documentation; all other requests get 503 with
`Retry-After`. The supervisor
stops it once the web process is ready. It runs as one process, `python -m … HOST PORT`, because
granian's command takes twice as long to start.
"""

import asyncio
import signal
import sys

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.embed import Server

from controlplane import asgi_server, environment, logs
from controlplane.core.errors import Unavailable
from controlplane.dataplane.application import Application
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.serving import landing_page, responses
from controlplane.dataplane.serving.call import Call, Receive, Scope, Send, drain_body
from controlplane.dataplane.storage import handover
from controlplane.documentation.serving import DocumentationSite
from controlplane.supervisor.lifeline import die_with_parent

RETRY_AFTER_SECONDS = 2
_STARTING = (
    "The console is starting. Nothing changed; repeat the request in a moment. To stop something"
    " now, use /emergency/."
)
_NO_SITE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="5">
<title>Documentation {state} · Switchgear</title>
</head>
<body>
<h1>The documentation is {state}</h1>
<p>The console is starting. This page reloads every 5 seconds.</p>
</body>
</html>
"""
_PROBES = {"/health/ready": "not_ready", "/health/startup": "starting"}

die_with_parent()
logs.configure_logging()
_environment = environment.read_environment()
handover.hold_lock(_environment.data_dir)
_plane = Plane()


async def _refuse_request(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close"})
        return
    call, path = Call(scope, receive, send), scope["path"].rstrip("/")
    await drain_body(receive)
    if path in _PROBES:
        await call.respond(
            responses.answer_json(503, {"status": _PROBES[path]}, responses.NO_STORE)
        )
    elif not path:
        await call.respond(landing_page.render_page(_plane.state))
    else:
        error = Unavailable(_STARTING, retry_after=RETRY_AFTER_SECONDS)
        await call.respond(responses.answer_error(error))


def _render_missing_docs(is_building: bool) -> str:
    return _NO_SITE.replace("{state}", "being built" if is_building else "not built")


_documentation = DocumentationSite(_refuse_request, _environment.docs_dir, _render_missing_docs)
app = Application(_plane, behind=_documentation)


async def run_server(host: str, port: int) -> None:
    server = Server(
        app,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(
            header_read_timeout=asgi_server.HEADER_SECONDS * 1000,
            max_buffer_size=asgi_server.BUFFER_BYTES,
        ),
        backlog=asgi_server.BACKLOG,
        backpressure=asgi_server.max_connections(),
        log_level=LogLevels.error,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(server.stop))
    await server.serve()


if __name__ == "__main__":
    asyncio.run(run_server(sys.argv[1], int(sys.argv[2])))
