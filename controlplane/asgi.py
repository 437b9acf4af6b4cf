"""The web process: the data plane in front, Django behind it, a gate between them, and sockets."""

import os
from importlib import import_module
from typing import cast

from django.core.asgi import get_asgi_application
from django.template.loader import render_to_string
from django.utils.module_loading import autodiscover_modules

from controlplane.supervisor.lifeline import die_with_parent

die_with_parent()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
os.environ.setdefault("DATABASE_POOL", "16")
_django = cast("ASGIApplication", get_asgi_application())
autodiscover_modules("topics")
# Else the first request for a page loads all of them on the event loop, and holds up every poll.
import_module("controlplane.urls")

from controlplane.beside import Web  # noqa: E402 - Django has to be set up first
from controlplane.core import health, metrics  # noqa: E402
from controlplane.core.errors import DomainError, Unavailable  # noqa: E402
from controlplane.core.live import consumer  # noqa: E402
from controlplane.dataplane import answers, figures  # noqa: E402
from controlplane.dataplane.application import Application  # noqa: E402
from controlplane.dataplane.call import ASGIApplication, Call  # noqa: E402
from controlplane.dataplane.credentials import authenticate  # noqa: E402
from controlplane.gate import Gate  # noqa: E402

_plane = Web()
_state = _plane.state
_hub = _plane.hub
health.set_snapshot_source(_state.status)


def _check_token(token: str, scope: str) -> None:
    """For the metrics, which are also read while the database is away."""
    headers = {b"x-api-key": token.encode()}
    found = authenticate(_state.tokens, headers, scope, clock=_state.unix)
    _state.used_tokens.add(found.token_id)


metrics.set_token_check(_check_token)


async def _refuse(call: Call, error: DomainError) -> None:
    """A page for people, a problem for programs. The front page stays there, read-only: it says
    what works and how to stop something by hand."""
    path: str = call.scope["path"]
    wants_page = b"text/html" in call.headers.get(b"accept", b"") and not path.startswith("/api/")
    if isinstance(error, Unavailable) and (wants_page or path == "/"):
        status = 200 if path == "/" else 503
        page = render_to_string("503.html")
        await call.answer(answers.page(status, page, retry_after=error.retry_after))
    else:
        await call.answer(answers.refusal(error))


_gate = Gate(_django, _state, _refuse, sockets=consumer.application(_hub))
metrics.from_process(_gate.latencies)
metrics.from_process(lambda: figures.latencies(_state))
application = Application(_plane, behind=_gate)
