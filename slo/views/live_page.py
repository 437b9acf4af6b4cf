"""Pages with a live part that is rendered again on request."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from controlplane.core.canonical import timestamp
from controlplane.core.page_responses import PersonRequest

PART = "live"


def is_part(request: PersonRequest) -> bool:
    return bool(request.htmx) and request.htmx.target == PART


def render_live(request: PersonRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    """Render `slo/<name>.html`, or only its live part `slo/_<name>.html` if that is requested.

    With the parts that stand above it on every page, and the server's time.
    """
    part = is_part(request)
    template = f"slo/{'_' if part else ''}{name}.html"
    response = render(request, template, {**context, "live": True, "oob": part})
    response["Switchgear-Now"] = timestamp(context["now"])
    return response
