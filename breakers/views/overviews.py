"""Pages over all dependencies: the board, the fallback matrix, the infrastructure and the map."""

from typing import Any

from django.db.models import F, Min
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from breakers.favorite_kinds import KIND
from breakers.map import fallback_coverage
from breakers.map import graph as map_graph
from breakers.models import Channel, Probe, Service
from breakers.models.registry import Criticality
from breakers.probes.services import PROBE_CADENCE
from breakers.states import board, dependency_status
from breakers.states.board import BreakerBoardCounts
from breakers.views import live
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.authority import read_teams
from controlplane.core.clock import db_now
from controlplane.core.configuration import samples
from controlplane.core.favorites import services as favorites
from controlplane.core.freshness import assess_freshness
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, signed_in
from controlplane.core.team_filter import build_filter_context, read_team_filter

BOARD_FILTERS = ("state", "criticality", "caller", "q", "team", favorites.FILTER)
MAX_SERVICES = 200
MAP_LEGEND = (
    ("open", "open"),
    ("half-open", "half_open"),
    ("closed, failing", "failing"),
    ("closed", "closed"),
    ("not reported", "unknown"),
)
AWAY_FIRST = F("probe__is_away").desc(nulls_last=True)
GROUPS = (
    ("Stores and external services", (Service.Kind.STORE, Service.Kind.EXTERNAL)),
    (
        "Services, workers and clients",
        (Service.Kind.SERVICE, Service.Kind.WORKER, Service.Kind.CLIENT),
    ),
)


@signed_in
@require_GET
def breakers_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    chosen = favorites.read_filter(request, KIND)
    teams = read_teams()
    team_filter = read_team_filter(request, teams)
    filters = board.parse_filter(request.GET, chosen, team_filter)
    starred = favorites.load_viewer_keys(request).get(KIND, ())
    page = board.load_page(filters, starred, now, teams=teams)
    callers = board.list_callers()
    dependencies = [row.status.dependency for row in page.rows]
    context = {
        **build_filter_context(team_filter, page.hidden),
        "now": now,
        "filters": filters,
        "favorites": chosen,
        "board": page,
        "counts": page.counts,
        "samples": page.samples,
        "segments": _state_segments(page.counts),
        "callers": callers if len(callers) <= board.MAX_CALLERS else [],
        "criticalities": Criticality.values,
        "may_register": authority.may_create(actor_of(request), "dependency"),
    }
    shown = [
        page.counts,
        [row.shown for row in page.rows],
        [one.pk for one in dependencies if one.name in starred],
        page.more,
        sorted(page.samples),
        callers,
        page.hidden,
        team_filter.choices,
        context["may_register"],
    ]
    response = live.render_page(request, "board", context, shown=shown)
    if request.htmx and request.htmx.trigger == "search":
        given = request.GET.items()
        kept = {name: value for name, value in given if name in BOARD_FILTERS and value}
        response["HX-Replace-Url"] = reverse("breakers_page", query=kept)
    return response


def _state_segments(counts: BreakerBoardCounts) -> list[tuple[str, str, int | None]]:
    """Return value, label and count of each state by which the board can be filtered."""
    return [
        ("", "All", None),
        (board.OVERRIDDEN, "Forced", counts.overridden),
        (dependency_status.OPEN, "Open", counts.open),
        (dependency_status.HALF_OPEN, "Half-open", counts.half_open),
        (board.FAILING, "Failing", counts.failing),
        (dependency_status.CLOSED, "Closed", None),
        (dependency_status.UNKNOWN, "Not reported", None),
    ]


@signed_in
@require_GET
def fallbacks_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    filters = fallback_coverage.parse_filter(request.GET)
    matrix = fallback_coverage.load_matrix(filters, now)
    teams, actor = read_teams(), actor_of(request)
    dependencies = [row.dependency for row in matrix.rows]
    context = {
        "now": now,
        "filters": filters,
        "matrix": matrix,
        "gaps": [(gap, matrix.counts[gap]) for gap in fallback_coverage.GAPS],
        "editable": [
            one.pk
            for one in dependencies
            if teams.decide(actor, Action.EDIT, one.resource).is_allowed
        ],
        "criticalities": Criticality.values,
    }
    return live.render_page(request, "fallbacks", context)


@signed_in
@require_GET
def infrastructure_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    groups: list[dict[str, Any]] = []
    for title, kinds in GROUPS:
        found = Service.objects.filter(kind__in=kinds).select_related("probe")
        rows = list(found.order_by(AWAY_FIRST, "-level", "slug")[: MAX_SERVICES + 1])
        groups.append(
            {"title": title, "services": rows[:MAX_SERVICES], "more": len(rows) > MAX_SERVICES}
        )
    channels = Channel.objects.order_by("stream", "name")[: 2 * MAX_SERVICES]
    answered = Probe.objects.filter(checked_at__isnull=False, error="")
    oldest = answered.aggregate(oldest=Min("checked_at"))["oldest"]
    services = [service for group in groups for service in group["services"]]
    context = {
        "now": now,
        "groups": groups,
        "samples": samples.find_sample_names(
            "service", {service.slug: service.changed_at for service in services}
        )
        | samples.find_sample_names("channel", {one.name: one.changed_at for one in channels}),
        "known": any(group["services"] for group in groups),
        "answering": assess_freshness(oldest, PROBE_CADENCE, now).is_current,
        "away": Service.objects.filter(probe__is_away=True).count(),
        "streams": [one for one in channels if one.kind == Channel.Kind.STREAM],
        "sockets": [one for one in channels if one.kind == Channel.Kind.REALTIME],
    }
    return live.render_page(request, "infrastructure", context)


@signed_in
@require_GET
def map_page(request: PersonRequest) -> HttpResponse:
    """Show the dependency map; `?service=core` focuses it on that service."""
    now = db_now()
    service = request.GET.get("service", "").strip()[:60]
    picture = map_graph.draw_map(service, now)
    context = {
        "now": now,
        "wanted": service,
        "picture": picture,
        "arrows": map_graph.ARROWS,
        "most_drawn": map_graph.MAX_DRAWN,
        "legend_states": MAP_LEGEND,
    }
    return live.render_page(request, "map", context)
