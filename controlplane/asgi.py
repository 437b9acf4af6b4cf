"""The web process: the data plane in front, Django behind it, a gate between them."""

import os
from typing import cast

from django.core.asgi import get_asgi_application
from django.template.loader import render_to_string

from controlplane.supervisor.lifeline import die_with_parent

die_with_parent()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
os.environ.setdefault("DATABASE_POOL", "16")
_django = cast("ASGIApplication", get_asgi_application())

from controlplane.core import health, metrics  # noqa: E402 - Django has to be set up first
from controlplane.core.errors import DomainError, Unavailable  # noqa: E402
from controlplane.dataplane import answers  # noqa: E402
from controlplane.dataplane.application import Application  # noqa: E402
from controlplane.dataplane.call import ASGIApplication, Call  # noqa: E402
from controlplane.dataplane.credentials import authenticate  # noqa: E402
from controlplane.dataplane.plane import Plane  # noqa: E402
from controlplane.gate import Gate  # noqa: E402

_plane = Plane()
health.set_snapshot_source(_plane.state.status)


def _check_token(token: str, scope: str) -> None:
    """For the metrics, which are also read while the database is away."""
    state = _plane.state
    headers = {b"x-api-key": token.encode()}
    found = authenticate(state.tokens, headers, scope, clock=state.unix)
    state.used_tokens.add(found.token_id)


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


application = Application(_plane, behind=Gate(_django, _plane.state, _refuse))
