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
from controlplane.dataplane.application import (  # noqa: E402
    Application,
    ASGIApplication,
    Scope,
    Send,
    send_answer,
)
from controlplane.dataplane.credentials import authenticate  # noqa: E402
from controlplane.dataplane.plane import Plane  # noqa: E402
from controlplane.gate import Gate  # noqa: E402

_plane = Plane()
health.set_snapshot_source(_plane.state.status)


def _check_token(token: str, scope: str) -> None:
    """For the metrics, which are also read while the database is away."""
    found = authenticate(_plane.state.tokens, {b"x-api-key": token.encode()}, scope)
    _plane.state.used_tokens.add(found.token_id)


metrics.set_token_check(_check_token)


async def _refuse(scope: Scope, send: Send, error: DomainError) -> None:
    headers = dict(scope["headers"])
    wants_page = b"text/html" in headers.get(b"accept", b"")
    is_page = wants_page and not scope["path"].startswith("/api/")
    if is_page and isinstance(error, Unavailable):
        answer = answers.page(503, render_to_string("503.html"), retry_after=error.retry_after)
    else:
        answer = answers.refusal(error)
    await send_answer(send, scope, headers, answer)


application = Application(_plane, behind=Gate(_django, _plane.state, _refuse))
