"""Rendering of pages with a part that is refreshed by live messages."""

from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, render_live, signed_in


@signed_in
@require_GET
def degradation_bar(request: PersonRequest) -> HttpResponse:
    """Render the bar with the degradation level, shown on top of every page."""
    return render_live(request, "_degradation.html", {"now": db_now()})


def render_page(
    request: PersonRequest, name: str, context: dict[str, Any], *, shown: object = None
) -> HttpResponse:
    """Render `breakers/<name>.html`, or only its live part `breakers/_<name>.html` for htmx.

    `name` may begin with a folder. For `shown` see :func:`page_responses.render_live`.
    """
    is_part = bool(request.htmx) and request.htmx.target == "live"
    folder, _, last = f"breakers/{name}".rpartition("/")
    template = f"{folder}/{'_' if is_part else ''}{last}.html"
    return render_live(request, template, {**context, "live": True, "oob": is_part}, shown=shown)
