"""The page *Fleet*: all data planes and relays, those that lag or are silent first."""

from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.views.decorators.http import require_GET

from controlplane import __version__
from controlplane.core.clock import db_now
from controlplane.core.fleet import queries
from controlplane.core.fleet.explanations import explain
from controlplane.core.fleet.statuses import (
    CURRENT,
    EMPTY,
    LAGGING,
    SILENT,
    SILENT_AFTER,
    STARTING,
    FleetMember,
    PublishedHead,
)
from controlplane.core.freshness import assess_freshness
from controlplane.core.page_responses import PersonRequest, render_live, signed_in
from controlplane.core.team_filter import PARAMETER, build_filter_context, read_team_filter

SHOWN = 100
IMPAIRED = "impaired"
BADGES = {
    SILENT: ("critical", "Silent", "engaged"),
    EMPTY: ("warning", "No snapshot", "engaged"),
    LAGGING: ("warning", "Lagging", "pending"),
    STARTING: ("clock", "Starting", "quiet"),
    CURRENT: ("check", "Up to date", "released"),
}
"""Icon, word and color of each state."""


@signed_in
@require_GET
def fleet_page(request: PersonRequest, template: str) -> HttpResponse:
    """Render `template`: the page, or only its table, which the page polls for changes."""
    now = db_now()
    fleet = queries.load_fleet(now)
    filters = _read_filters(request)
    matching = [member for member in fleet.members if _matches(member, filters)]
    team_filter, found, own = read_team_filter(request), matching, dict[str, int]()
    if not team_filter.is_all:
        own = queries.count_instances_by_relay(team_filter.includes, now)
        found = [one for one in queries.select_route(fleet.members, own) if one in matching]
    page = Paginator(found, SHOWN).get_page(request.GET.get("page"))
    heard = [member for member in fleet.members if not member.is_silent]
    asked = {
        **filters,
        PARAMETER: team_filter.parameter,
        "page": str(page.number) if page.number > 1 else "",
    }
    context: dict[str, Any] = {
        **build_filter_context(team_filter, len(matching) - len(found)),
        "own": sum(own.values()),
        "now": now,
        "head": fleet.head,
        "release": __version__,
        "rows": [
            {**_build_row(member, fleet.head, now), "own": own.get(member.name, 0)}
            for member in page.object_list
        ],
        "page": page,
        "filters": filters,
        "asked": urlencode({name: value for name, value in asked.items() if value}),
        "total": len(fleet.members),
        "counts": {
            state: sum(member.state == state for member in fleet.members) for state in BADGES
        },
        "impaired": sum(member.is_impaired for member in fleet.members),
        "planes": sum(not member.is_relay for member in fleet.members),
        "relays": sum(member.is_relay for member in fleet.members),
        "instances": sum(member.instances for member in heard),
        "held": sum(member.held for member in heard),
    }
    return render_live(request, template, context)


def _read_filters(request: PersonRequest) -> dict[str, str]:
    """Return the filters in the query string; invalid values become empty."""
    state = request.GET.get("state", "")
    return {
        "state": state if state == IMPAIRED else "",
        "q": request.GET.get("q", "").replace("\x00", "").strip()[:200],
    }


def _matches(member: FleetMember, filters: dict[str, str]) -> bool:
    if filters["state"] and not member.is_impaired:
        return False
    text = " ".join([member.name, member.kind, *member.upstreams]).casefold()
    return all(word in text for word in filters["q"].casefold().split())


def _build_row(member: FleetMember, head: PublishedHead, now: Any) -> dict[str, Any]:
    symbol, word, tone = BADGES[member.state]
    return {
        "member": member,
        "badge": {"symbol": symbol, "word": word, "tone": tone},
        "explanation": explain(member, head, now),
        "freshness": assess_freshness(member.heard_at, SILENT_AFTER, now),
        "is_other_epoch": member.version is not None and member.epoch != head.epoch,
        "is_other_version": member.version is not None and member.version != head.version,
        "is_other_release": bool(set(member.releases) - {__version__}),
    }
