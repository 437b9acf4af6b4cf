"""The data plane of a starting installation: it answers services before the console is ready.

It serves the signed copy on the console's port. The supervisor stops it once the web process has
started. All other requests get 503 and `Retry-After`. Started as `python -m … HOST PORT`, it is one
process: granian's command would take twice as long to the first answer.
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
from controlplane.supervisor.lifeline import die_with_parent

from .serving import answers, landing_page
from .serving.call import Call, Receive, Scope, Send, drain
from .storage import handover

RETRY_AFTER_SECONDS = 2
_STARTING = "The console is starting; nothing was changed. Repeat the request in a moment."
_PROBES = {"/health/ready": "not_ready", "/health/startup": "starting"}

die_with_parent()
logs.configure_logging()
handover.hold_lock(environment.read_environment().data_dir)
_plane = Plane()


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close"})
        return
    call, path = Call(scope, receive, send), scope["path"].rstrip("/")
    await drain(receive)
    if path in _PROBES:
        await call.answer(answers.json(503, {"status": _PROBES[path]}, answers.NO_STORE))
    elif not path:
        await call.answer(landing_page.page(_plane.state))
    else:
        error = Unavailable(_STARTING, retry_after=RETRY_AFTER_SECONDS)
        await call.answer(answers.refusal(error))


app = Application(_plane, behind=_refuse)


async def serve(host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT."""
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
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
