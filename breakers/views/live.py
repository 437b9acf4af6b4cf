"""Rendering of pages with a part that is refreshed by live messages."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in

PART = "live"


@signed_in
@require_GET
def degradation_bar(request: PersonRequest) -> HttpResponse:
    """Render the bar with the degradation level, shown on top of every page."""
    response = render(request, "_degradation.html")
    response["Switchgear-Now"] = timestamp(db_now())
    return response


def render_page(
    request: PersonRequest, name: str, context: dict[str, Any], *, target: str = PART
) -> HttpResponse:
    """Render `breakers/<name>.html`, or only its live part `breakers/_<name>.html` for htmx.

    `name` may begin with a folder. The response has the server's time in a header.
    """
    is_part = bool(request.htmx) and request.htmx.target == target
    folder, _, last = f"breakers/{name}".rpartition("/")
    template = f"{folder}/{'_' if is_part else ''}{last}.html"
    response = render(request, template, {**context, "live": True, "oob": is_part})
    response["Switchgear-Now"] = timestamp(context["now"])
    return response
