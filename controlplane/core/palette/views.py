"""Views of the palette: a page that works without scripts, and the result list for the dialog."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in

from . import search
from .registry import PaletteQuery


@signed_in
@require_GET
def find_page(request: PersonRequest, template: str) -> HttpResponse:
    """Show the palette entries that match `?q=`; `template` makes a whole page or just the list."""
    text = request.GET.get("q", "").replace("\x00", "").strip()[: search.MAX_QUERY_LENGTH]
    groups = search.search_palette(PaletteQuery(text, request.user, db_now()))
    total = sum(len(found) for _, found in groups)
    return render(request, template, {"q": text, "groups": groups, "total": total})
