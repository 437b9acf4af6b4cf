"""The board of SLOs."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in
from slo.dashboard import board

from . import live_page

FILTERS = ("state", "service", "q")


@signed_in
@require_GET
def slos_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    asked = board.parse_filters(request.GET)
    tally, services = board.count_slos(), board.list_services()
    context = {
        "now": now,
        "asked": asked,
        "found": board.load_page(asked, now),
        "tally": tally,
        "is_late": tally.is_late(now),
        "services": services if len(services) <= board.MAX_SERVICES else [],
    }
    response = live_page.render_live(request, "board", context)
    if request.htmx and request.htmx.trigger == "search":
        kept = request.GET.copy()
        for name in [*kept]:
            if name not in FILTERS or not kept[name]:
                del kept[name]
        path = reverse("slos_page")
        response["HX-Replace-Url"] = f"{path}?{kept.urlencode()}" if kept else path
    return response
