"""Views of runbooks: the list, and a runbook with its status lines."""

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in

from . import library, markdown


@signed_in
@require_GET
def runbooks_page(request: PersonRequest) -> HttpResponse:
    return render(request, "core/runbooks.html", {"runbooks": library.list_runbooks()})


@signed_in
@require_GET
def runbook_page(request: PersonRequest, slug: str) -> HttpResponse:
    runbook = library.find(slug)
    if runbook is None:
        raise Http404
    now = db_now()
    context = {
        "now": now,
        "runbook": runbook,
        "body": markdown.render_html(runbook.body),
        "lines": library.read_lines(slug, now),
    }
    return render(request, "core/runbook.html", context)
