"""How these pages stay current: their live part is read anew each time it is asked for."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from controlplane.core.browser import PersonRequest
from controlplane.core.canonical import timestamp

PART = "live"


def is_part(request: PersonRequest) -> bool:
    return bool(request.htmx) and request.htmx.target == PART


def render_live(request: PersonRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    """`slo/<name>.html`, or its live part `slo/_<name>.html` when the page asks for it, with what
    stands above it on every page. Tells the server's time either way."""
    part = is_part(request)
    template = f"slo/{'_' if part else ''}{name}.html"
    response = render(request, template, {**context, "live": True, "oob": part})
    response["Switchgear-Now"] = timestamp(context["now"])
    return response
