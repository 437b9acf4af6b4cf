"""The runbook for a backlog of dead letters, with ways into the console at each step."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from breakers.models import Dependency
from breakers.models.dead_letters import LetterStream
from breakers.states import board
from breakers.views.dead_letters.inbox import watched
from controlplane.core.browser import PersonRequest, signed_in
from controlplane.core.clock import db_now

SHOWN = 5


@signed_in
@require_GET
def runbook_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    deep = LetterStream.objects.filter(gone_at__isnull=True, depth__gt=0).order_by("-depth")
    context = {
        "now": now,
        **watched(),
        "alarmed": LetterStream.objects.filter(
            gone_at__isnull=True, alarmed_at__isnull=False
        ).count(),
        "deepest": list(deep[:SHOWN]),
        "breakers": board.find(board.Wanted(), now).tally,
        "registered": Dependency.objects.registered().exists(),
    }
    return render(request, "breakers/dead_letters/runbook.html", context)
