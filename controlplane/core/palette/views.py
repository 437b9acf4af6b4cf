"""Views of the palette: a page that works without scripts, and the result list for the dialog."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from controlplane.core.clock import db_now
from controlplane.core.page_responses import PersonRequest, signed_in

from . import search
from .registry import PaletteQuery


@signed_in
@require_GET
def find_page(request: PersonRequest) -> HttpResponse:
    return render(request, "core/palette.html", _context(request))


@signed_in
@require_GET
def find_part(request: PersonRequest) -> HttpResponse:
    """Return only the result list, for the dialog that searches while a person types."""
    return render(request, "_palette_found.html", _context(request))


def _context(request: PersonRequest) -> dict[str, Any]:
    text = request.GET.get("q", "").replace("\x00", "").strip()[: search.MAX_QUERY_LENGTH]
    groups = search.search_palette(PaletteQuery(text, request.user, db_now()))
    return {"q": text, "groups": groups, "total": sum(len(found) for _, found in groups)}
