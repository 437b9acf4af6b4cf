"""The web process: the data plane in front, Django behind it, a gate between them, and sockets."""

import os
import sys
from functools import cache, partial
from importlib import import_module
from typing import cast

from django.core.asgi import get_asgi_application
from django.template.loader import render_to_string
from django.utils.module_loading import autodiscover_modules

from controlplane.supervisor.lifeline import die_with_parent

die_with_parent()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
os.environ.setdefault("DATABASE_POOL", "24")
_django = cast("ASGIApplication", get_asgi_application())
# The longest time a computing thread keeps the interpreter while another one waits for it. The
# default of 5 ms, once per query and computing thread, would make an engagement take seconds.
sys.setswitchinterval(0.0005)
autodiscover_modules("topics")
# Else the first request for a page loads all of them on the event loop, and holds up every poll.
import_module("controlplane.urls")

from controlplane import environment  # noqa: E402 - Django has to be set up first
from controlplane.core import health, metrics  # noqa: E402
from controlplane.core.errors import Busy, DomainError, Unavailable  # noqa: E402
from controlplane.core.live import consumer  # noqa: E402
from controlplane.dataplane import metrics as dataplane_metrics  # noqa: E402
from controlplane.dataplane.application import Application  # noqa: E402
from controlplane.gate import Gate  # noqa: E402
from controlplane.token_reads import TokenReads  # noqa: E402

from .accounts.tokens import lookup  # noqa: E402
from .accounts.tokens.lookup import KnownToken  # noqa: E402
from .core.roles import Role  # noqa: E402
from .dataplane.memory.credentials import authenticate, identify  # noqa: E402
from .dataplane.serving import answers  # noqa: E402
from .dataplane.serving.call import ASGIApplication, Call  # noqa: E402
from .dataplane.storage import handover  # noqa: E402
from .web_hub import Web  # noqa: E402

MAX_TOKEN_AGE_SECONDS = 3.0
"""Maximum age of a token table that reads trust; it is compared every second."""

_plane = Web()
_state = _plane.state
_hub = _plane.hub
health.set_snapshot_source(_state.status)
health.set_starting(partial(handover.is_pending, environment.read().data_dir))


def _check_token(token: str, scope: str) -> None:
    """Authorize a metrics scrape from memory, so that it works without the database."""
    headers = {b"x-api-key": token.encode()}
    found = authenticate(_state.tokens, headers, scope, clock=_state.unix)
    _state.used_tokens.add(found.token_id)


metrics.set_token_check(_check_token)


@cache
def _busy_page() -> str:
    """Return the page of an overloaded server, rendered once."""
    return render_to_string("busy.html")


def _find_token(text: str) -> KnownToken | None:
    """Return the token for an API read; None if it is unknown here or the table may be old."""
    if not _state.database_reachable or _state.age_seconds() > MAX_TOKEN_AGE_SECONDS:
        return None
    headers = {b"x-api-key": text.encode()}
    try:
        found = identify(_state.tokens, headers, clock=_state.unix)
    except DomainError:
        return None
    if found.owner_id is None:
        return None
    _state.used_tokens.add(found.token_id)
    role = Role(found.role)
    return KnownToken(
        found.token_id, found.name, found.owner_id, role, found.scopes, found.services
    )


lookup.set_lookup(_find_token)


async def _refuse(call: Call, error: DomainError) -> None:
    """Answer with a page for people, or a problem document for programs.

    The front page stays available, read-only, with the functions that still work and the manual
    ways to stop something.
    """
    path: str = call.scope["path"]
    wants_page = b"text/html" in call.headers.get(b"accept", b"") and not path.startswith("/api/")
    if isinstance(error, Busy):
        found = answers.refusal(error)
        if wants_page:
            found = answers.page(503, _busy_page(), retry_after=error.retry_after)
        await call.answer(found)
    elif isinstance(error, Unavailable) and (wants_page or path == "/"):
        status = 200 if path == "/" else 503
        page = render_to_string("503.html", {"disk": _state.disk})
        await call.answer(answers.page(status, page, retry_after=error.retry_after))
    else:
        await call.answer(answers.refusal(error))


_gate = Gate(TokenReads(_django), _state, _refuse, sockets=consumer.build_application(_hub))
metrics.PROCESS_METRICS.add()(_gate.metrics)
metrics.PROCESS_METRICS.add()(lambda: dataplane_metrics.process_metrics(_state))
application = Application(_plane, behind=_gate)
