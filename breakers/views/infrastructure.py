"""The infrastructure page: stores and external services with their probes, streams and sockets."""

from django.db.models import F
from django.http import HttpResponse
from django.views.decorators.http import require_GET

from breakers.models import Channel, Probe, Service
from breakers.views import live
from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in

SHOWN = 200
AWAY_FIRST = F("probe__is_away").desc(nulls_last=True)
GROUPS = (
    ("Stores and other people's services", (Service.Kind.STORE, Service.Kind.EXTERNAL)),
    (
        "Services, workers and clients",
        (Service.Kind.SERVICE, Service.Kind.WORKER, Service.Kind.CLIENT),
    ),
)


@signed_in
@require_GET
def infrastructure_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    groups = []
    for title, kinds in GROUPS:
        found = Service.objects.filter(kind__in=kinds).select_related("probe")
        rows = list(found.order_by(AWAY_FIRST, "-level", "slug")[: SHOWN + 1])
        groups.append({"title": title, "services": rows[:SHOWN], "more": len(rows) > SHOWN})
    channels = Channel.objects.order_by("stream", "name")[: 2 * SHOWN]
    context = {
        "now": now,
        "groups": groups,
        "known": any(group["services"] for group in groups),
        "answering": Probe.objects.filter(checked_at__isnull=False, error="").exists(),
        "away": Service.objects.filter(probe__is_away=True).count(),
        "streams": [one for one in channels if one.kind == Channel.Kind.STREAM],
        "sockets": [one for one in channels if one.kind == Channel.Kind.REALTIME],
    }
    return live.render_page(request, "infrastructure", context)
