"""The dependency map, drawn by the server, and the same as a table."""

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from breakers.map import graph as map_graph
from breakers.views import live
from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in


@signed_in
@require_GET
def map_page(request: PersonRequest) -> HttpResponse:
    """Show the map.

    `?service=core` focuses a service: who is hit when it fails, and what it needs.
    """
    now = db_now()
    asked = request.GET.get("service", "").strip()[:60]
    picture = map_graph.draw_map(asked, now)
    context = {
        "now": now,
        "asked": asked,
        "picture": picture,
        "table": sorted(picture.lines, key=map_graph.worst_first),
        "arrows": ("calm", "half", "open"),
        "most_drawn": map_graph.MAX_DRAWN,
    }
    return live.render_page(request, "map", context)
