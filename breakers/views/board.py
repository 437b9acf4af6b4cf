"""The board of breakers: states, overrides and recent failures."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from breakers.models.registry import Criticality
from breakers.states import board
from breakers.views import live
from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in

FILTERS = ("state", "criticality", "caller", "q")


@signed_in
@require_GET
def breakers_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    asked = board.parse_filter(request.GET)
    found = board.load_page(asked, now)
    callers = board.list_callers()
    context = {
        "now": now,
        "asked": asked,
        "found": found,
        "tally": found.tally,
        "callers": callers if len(callers) <= board.MAX_CALLERS else [],
        "criticalities": Criticality.values,
    }
    response = live.render_page(request, "board", context)
    if request.htmx and request.htmx.trigger == "search":
        kept = request.GET.copy()
        for name in [*kept]:
            if name not in FILTERS or not kept[name]:
                del kept[name]
        path = reverse("breakers_page")
        response["HX-Replace-Url"] = f"{path}?{kept.urlencode()}" if kept else path
    return response
