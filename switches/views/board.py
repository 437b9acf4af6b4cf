"""Switchboard page: engaged and ramping switches first, with reason, person and expiry."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from controlplane.core import authority
from controlplane.core.favorites import services as favorites
from controlplane.core.first_steps import context as first_steps
from controlplane.core.instances.check_series import MINUTE_SECONDS, counted_until
from controlplane.core.page_registry import BOARD_NOTICES
from controlplane.core.page_responses import PersonRequest, render_live, signed_in
from controlplane.core.team_filter import build_filter_context, read_team_filter
from switches import board, page_updates
from switches.favorite_kinds import KIND as FAVORITE
from switches.models import Switch
from switches.scopes import SCOPES


@signed_in
@require_GET
def switchboard(request: PersonRequest) -> HttpResponse:
    head, now = page_updates.read_head_and_time()
    return render_live(request, "switches/board.html", _build_context(request, head, now))


@signed_in
@require_GET
def switchboard_rows(request: PersonRequest) -> HttpResponse:
    """Render the board's live part, or 204 if it has not changed since the poll token `since`."""
    head, now = page_updates.read_head_and_time()
    nothing_new = page_updates.respond_if_unchanged(request, _build_token(head, now), now)
    if nothing_new is not None:
        return nothing_new
    context = {**_build_context(request, head, now), "oob": True}
    response = render_live(request, "switches/_board.html", context)
    if request.htmx.trigger == "search":
        query = request.GET.copy()
        for name in ("since", "page"):
            query.pop(name, None)
        filters = "&".join(part for part in query.urlencode().split("&") if not part.endswith("="))
        response["HX-Replace-Url"] = f"/?{filters}" if filters else "/"
    return response


@signed_in
@require_GET
def alarm_bar(request: PersonRequest) -> HttpResponse:
    """Render the bar with alarms, such as a global stop, for pages without live updates."""
    return render(request, "_alarm_refresh.html", {"oob": True})


def _build_context(request: PersonRequest, head: int, now: datetime) -> dict[str, Any]:
    teams = authority.read_teams()
    filters = _read_filters(request, teams)
    found = board.load_switchboard(filters, request.user, now)
    return {
        **build_filter_context(filters.team, found.hidden),
        "teams": teams,
        "live": True,
        "head": _build_token(head, now),
        "now": now,
        "filters": filters,
        "board": found,
        "known": Switch.objects.count(),
        "notices": [notice for read in BOARD_NOTICES.functions() if (notice := read(now))],
        "scopes": SCOPES.values(),
        "first_steps": first_steps.read_for_board(request, head, now),
    }


def _build_token(head: int, now: datetime) -> str:
    """Return the board's poll token, which also changes each minute, for the rows' sparklines."""
    return f"{head}-{counted_until(now) // MINUTE_SECONDS}"


def _read_filters(request: PersonRequest, teams: authority.Teams) -> board.SwitchboardFilters:
    given = request.GET
    state, scope, page = given.get("state", ""), given.get("scope", ""), given.get("page", "")
    return board.SwitchboardFilters(
        state=state if state in board.CONDITIONS else "",
        scope=scope if scope in SCOPES else "",
        q=given.get("q", "").replace("\x00", "").strip()[:200],
        page=int(page) if page.isascii() and page.isdigit() and 0 < int(page) < 10_000 else 1,
        mine=given.get(favorites.FILTER, "") == "1",
        favorites=favorites.load_viewer_keys(request).get(FAVORITE, ()),
        only_favorites=given.get(favorites.FILTER) == favorites.SELECTED,
        team=read_team_filter(request, teams),
    )
