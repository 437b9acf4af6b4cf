"""How these pages stay current. What instances report writes no audit row, so the live part is read
anew each time it is asked for."""

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
    """The bar above every page that says how far the installation has degraded."""
    response = render(request, "_degradation.html")
    response["Switchgear-Now"] = timestamp(db_now())
    return response


def render_page(
    request: PersonRequest, name: str, context: dict[str, Any], *, target: str = PART
) -> HttpResponse:
    """`breakers/<name>.html`, or its live part `breakers/_<name>.html` when the page asks for it,
    with what stands above it on every page; a folder may lead the name. Tells the server's time
    either way."""
    is_part = bool(request.htmx) and request.htmx.target == target
    folder, _, last = f"breakers/{name}".rpartition("/")
    template = f"{folder}/{'_' if is_part else ''}{last}.html"
    response = render(request, template, {**context, "live": True, "oob": is_part})
    response["Switchgear-Now"] = timestamp(context["now"])
    return response
