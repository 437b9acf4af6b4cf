"""ASGI application of the web process: the data plane, and behind a gate Django and sockets."""

import os
import sys
from functools import cache, partial
from importlib import import_module
from typing import cast

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.template.loader import render_to_string
from django.utils.module_loading import autodiscover_modules

from controlplane.supervisor.lifeline import die_with_parent

die_with_parent()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
os.environ.setdefault("DATABASE_POOL", "24")
_django = cast("ASGIApplication", get_asgi_application())
# Time a thread may hold the interpreter while another one waits. The default of 5 ms, for each
# query and busy thread, would make an engage take seconds.
sys.setswitchinterval(0.0005)
autodiscover_modules("topics")
# Otherwise the first page request would load all views on the event loop and delay every poll.
import_module("controlplane.urls")

from controlplane import environment  # noqa: E402 - Django has to be set up first
from controlplane.core import health, metrics  # noqa: E402
from controlplane.core.console_urls import SCIM_ROOT  # noqa: E402
from controlplane.core.errors import Busy, DomainError, Unavailable  # noqa: E402
from controlplane.dataplane import metrics as dataplane_metrics  # noqa: E402
from controlplane.dataplane.application import Application  # noqa: E402
from controlplane.documentation.serving import DocumentationSite  # noqa: E402
from controlplane.gate import RequestGate  # noqa: E402
from controlplane.live import consumer  # noqa: E402
from controlplane.token_reads import TokenReads  # noqa: E402

from .accounts.tokens import lookup  # noqa: E402
from .accounts.tokens.lookup import KnownToken  # noqa: E402
from .core.roles import Role  # noqa: E402
from .dataplane.memory.credentials import authenticate, identify  # noqa: E402
from .dataplane.serving import responses  # noqa: E402
from .dataplane.serving.call import ASGIApplication, Call  # noqa: E402
from .dataplane.storage import handover  # noqa: E402
from .web_hub import WebPlane  # noqa: E402

MAX_TOKEN_AGE_SECONDS = 3.0
"""Maximum time since the token table was compared with the database, for API reads."""

_plane = WebPlane()
_state = _plane.state
_hub = _plane.hub
health.snapshot_source = _state.status
health.is_starting = partial(handover.is_pending, environment.read_environment().data_dir)


def _check_token(token: str, scope: str) -> None:
    """Authorize a request for metrics by the tokens in memory, so that no database is needed."""
    headers = {b"x-api-key": token.encode()}
    credential = authenticate(_state.tokens, headers, scope, clock=_state.unix)
    _state.used_tokens.add(credential.token_id)


metrics.token_check = _check_token


@cache
def _busy_page() -> str:
    return render_to_string("busy.html")


def _render_missing_docs(is_building: bool) -> str:
    return render_to_string("docs_missing.html", {"is_building": is_building})


def _find_token(text: str) -> KnownToken | None:
    """Return the token of an API read from memory; None if unknown, or if memory is out of date."""
    if not _state.database_reachable or _state.age_seconds() > MAX_TOKEN_AGE_SECONDS:
        return None
    headers = {b"x-api-key": text.encode()}
    try:
        token = identify(_state.tokens, headers, clock=_state.unix)
    except DomainError:
        return None
    if token.owner_id is None:
        return None
    _state.used_tokens.add(token.token_id)
    role = Role(token.role)
    return KnownToken(
        token.token_id,
        token.name,
        token.owner_id,
        role,
        token.scopes,
        token.services,
        token.team,
        token.patterns,
        token.only_owned,
    )


lookup.token_table = _find_token


async def _send_refusal(call: Call, error: DomainError) -> None:
    """Send the response for an error: a page to browsers, a problem document to other clients."""
    path: str = call.scope["path"]
    accepts_page = b"text/html" in call.headers.get(b"accept", b"")
    wants_page = accepts_page and not path.startswith(("/api/", SCIM_ROOT))
    if isinstance(error, Busy):
        found = responses.answer_error(error, path)
        if wants_page:
            found = responses.answer_page(503, _busy_page(), retry_after=error.retry_after)
        await call.respond(found)
    elif isinstance(error, Unavailable) and (wants_page or path == "/"):
        status = 200 if path == "/" else 503
        page = render_to_string("503.html", {"disk": _state.disk})
        await call.respond(responses.answer_page(status, page, retry_after=error.retry_after))
    else:
        await call.respond(responses.answer_error(error, path))


_documentation = DocumentationSite(TokenReads(_django), settings.DOCS_ROOT, _render_missing_docs)
_gate = RequestGate(_documentation, _state, _send_refusal, sockets=consumer.build_application(_hub))
metrics.PROCESS_METRICS.add()(_gate.metrics)
metrics.PROCESS_METRICS.add()(lambda: dataplane_metrics.process_metrics(_state))
application = Application(_plane, behind=_gate)
