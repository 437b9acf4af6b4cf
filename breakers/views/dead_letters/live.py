"""A page of dead letters, or its live part when the page asks for that."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render

from breakers.views.live import PART
from controlplane.core.browser import PersonRequest
from controlplane.core.canonical import timestamp

FOLDER = "breakers/dead_letters"


def page(request: PersonRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    """`<name>.html`, or `_<name>.html` for the part; tells the server's time either way."""
    is_part = bool(request.htmx) and request.htmx.target == PART
    template = f"{FOLDER}/{'_' if is_part else ''}{name}.html"
    response = render(request, template, {**context, "live": True, "oob": is_part})
    response["Switchgear-Now"] = timestamp(context["now"])
    return response
