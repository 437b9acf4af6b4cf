"""The board of SLOs."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from controlplane.core import authority
from controlplane.core.clock import db_now
from controlplane.core.configuration import samples
from controlplane.core.favorites import services as favorites
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, signed_in
from controlplane.core.team_filter import build_filter_context, read_team_filter
from slo.dashboard import board
from slo.favorite_kinds import KIND

from . import responses

FILTERS = ("state", "service", "q", "team", favorites.FILTER)


@signed_in
@require_GET
def slos_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    chosen = favorites.read_filter(request, KIND)
    teams = authority.read_teams()
    team_filter = read_team_filter(request, teams)
    filters = board.parse_filters(request.GET, chosen, team_filter)
    starred = favorites.load_viewer_keys(request).get(KIND, ())
    rows, has_more = board.load_page(filters, starred, now)
    counts, services = board.count_slos(), board.list_services()
    context = {
        **build_filter_context(team_filter, board.count_hidden(filters)),
        "teams": teams,
        "may_create": authority.may_create(actor_of(request), "slo"),
        "now": now,
        "filters": filters,
        "favorites": chosen,
        "rows": rows,
        "has_more": has_more,
        "counts": counts,
        "is_late": counts.is_late(now),
        "samples": samples.find_sample_names(
            "SLO", {row.slo.name: row.slo.changed_at for row in rows}
        ),
        "services": services if len(services) <= board.MAX_SERVICES else [],
    }
    response = responses.render_live(request, "board", context)
    if request.htmx and request.htmx.trigger == "search":
        query = {name: text for name, text in request.GET.items() if name in FILTERS and text}
        response["HX-Replace-Url"] = reverse("slos_page", query=query)
    return response
