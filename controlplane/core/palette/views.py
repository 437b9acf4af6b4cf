"""The palette: a page of its own without a script, and its list for the dialog."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from controlplane.core.browser import PersonRequest, signed_in
from controlplane.core.clock import db_now

from . import search as finding
from .registry import Asked


@signed_in
@require_GET
def find_page(request: PersonRequest) -> HttpResponse:
    return render(request, "core/palette.html", _context(request))


@signed_in
@require_GET
def find_part(request: PersonRequest) -> HttpResponse:
    """The list alone, for the dialog that asks while somebody types."""
    return render(request, "_palette_found.html", _context(request))


def _context(request: PersonRequest) -> dict[str, Any]:
    text = request.GET.get("q", "").replace("\x00", "").strip()[: finding.MAX_QUERY_LENGTH]
    groups = finding.find(Asked(text, request.user, db_now()))
    return {"q": text, "groups": groups, "total": sum(len(found) for _, found in groups)}
