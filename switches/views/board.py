"""Switchboard page: engaged and ramping switches first, with reason, person and expiry."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from controlplane.core.page_responses import PersonRequest, signed_in
from switches import board, polling
from switches.models import Switch
from switches.scopes import SCOPES


@signed_in
@require_GET
def switchboard(request: PersonRequest) -> HttpResponse:
    head, now = polling.head_and_now()
    return polling.stamp_server_time(
        render(request, "switches/board.html", _context(request, head, now)), now
    )


@signed_in
@require_GET
def rows(request: PersonRequest) -> HttpResponse:
    """Render the board's live part, or 204 if nothing changed since the page's `since`."""
    head, now = polling.head_and_now()
    nothing_new = polling.unchanged(request, head, now)
    if nothing_new is not None:
        return nothing_new
    response = polling.render_part(
        request, "switches/_board.html", _context(request, head, now), now
    )
    if request.htmx.trigger == "search":
        asked = request.GET.copy()
        for name in ("since", "page"):
            asked.pop(name, None)
        kept = "&".join(part for part in asked.urlencode().split("&") if not part.endswith("="))
        response["HX-Replace-Url"] = f"/?{kept}" if kept else "/"
    return response


@signed_in
@require_GET
def alarm(request: PersonRequest) -> HttpResponse:
    """Render the alarm bar for pages without live updates."""
    return render(request, "_alarm_part.html", {"oob": True})


def _context(request: PersonRequest, head: int, now: datetime) -> dict[str, Any]:
    asked = board.read_filters(request.GET)
    found, more = board.find_rows(asked, request.user, now)
    return {
        "live": True,
        "head": head,
        "now": now,
        "asked": asked,
        "rows": found,
        "more": more,
        "known": Switch.objects.count(),
        "scopes": SCOPES.values(),
    }
