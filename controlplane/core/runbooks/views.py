"""The pages of runbooks: all of them by their symptoms, and one to follow."""

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from controlplane.core.browser import PersonRequest, signed_in
from controlplane.core.clock import db_now

from . import rendering, shelf, status


@signed_in
@require_GET
def runbooks_page(request: PersonRequest) -> HttpResponse:
    return render(request, "core/runbooks.html", {"runbooks": shelf.every()})


@signed_in
@require_GET
def runbook_page(request: PersonRequest, slug: str) -> HttpResponse:
    runbook = shelf.find(slug)
    if runbook is None:
        raise Http404
    now = db_now()
    context = {
        "now": now,
        "runbook": runbook,
        "body": rendering.html(runbook.body),
        "lines": status.lines(slug, now),
    }
    return render(request, "core/runbook.html", context)
