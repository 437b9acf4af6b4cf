"""The data plane of a starting installation: it answers services before the console is ready.

It serves the signed copy on the console's port. The supervisor stops it once the web process is
ready. All other requests get 503 and `Retry-After`.
"""

from controlplane import logs
from controlplane.core.errors import Unavailable
from controlplane.dataplane import answers, landing
from controlplane.dataplane.application import Application
from controlplane.dataplane.call import Call, Receive, Scope, Send, drain
from controlplane.dataplane.plane import Plane
from controlplane.supervisor.lifeline import die_with_parent

RETRY_AFTER_SECONDS = 2
_STARTING = "The console is starting; nothing was changed. Repeat the request in a moment."
_PROBES = {"/health/ready": "not_ready", "/health/startup": "starting"}

die_with_parent()
logs.configure()
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
        await call.answer(landing.page(_plane.state))
    else:
        error = Unavailable(_STARTING, retry_after=RETRY_AFTER_SECONDS)
        await call.answer(answers.refusal(error))


app = Application(_plane, behind=_refuse)
