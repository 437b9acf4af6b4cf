"""Views of the palette: a page that works without scripts, and the result list for the dialog."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in

from . import search


@signed_in
@require_GET
def find_page(request: PersonRequest, template: str) -> HttpResponse:
    """Show the palette entries that match `?q=`; `template` makes a whole page or just the list."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[: search.MAX_QUERY_LENGTH]
    query = search.read_query(text, request.user, db_now())
    groups = search.search_palette(query)
    total = sum(len(found) for _, found in groups)
    context = {"q": text, "groups": groups, "total": total, "scope": query.scope}
    return render(request, template, context)
