"""Page of the first steps and the sample configuration, and forms to hide and show the steps."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from controlplane.core.clock import db_now
from controlplane.core.configuration import samples
from controlplane.core.first_steps import context, services
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import (
    PersonRequest,
    page_view,
    redirect_done,
    render_live,
)

PAGE = "first_steps_page"


@page_view("GET")
def first_steps_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    items = samples.list_items()
    shown = {
        "counts": samples.describe_counts(items),
        "kept": [item for item in items if item.kept],
    }
    view = context.read_for_page(request, now)
    values = {
        "now": now,
        "state": services.read_state(),
        "first_steps": view,
        "samples": items and shown,
    }
    return render_live(request, "core/first_steps/page.html", values)


@page_view("GET")
def first_steps_part(request: PersonRequest) -> HttpResponse:
    """Render the steps for a page that shows them already."""
    now = db_now()
    view = context.read_for_page(request, now, on_page="page" in request.GET)
    return render(request, "core/first_steps/_steps.html", {"now": now, "first_steps": view})


@page_view("POST")
def hide(request: PersonRequest) -> HttpResponse:
    services.hide(actor=actor_of(request), now=db_now())
    return redirect_done(request, "The first steps are hidden.", reverse("switchboard"))


@page_view("POST")
def show(request: PersonRequest) -> HttpResponse:
    services.show(actor=actor_of(request), now=db_now())
    return redirect(PAGE)
