"""Page of changes that PostgreSQL has lost, with the decision to keep switches engaged."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.core.clock import db_now
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, page_view, respond_done
from switches.lost_versions import decisions

SHOWN = 500


@page_view("GET", "POST")
def lost_changes_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    if request.method == "POST":
        chosen = [int(one) for one in request.POST.getlist("change") if one.isdecimal()]
        count = decisions.keep_engaged(chosen[:SHOWN], actor=actor_of(request), now=now)
        kept = "1 switch stays" if count == 1 else f"{count} switches stay"
        message = f"{kept} engaged." if count else "Nothing changed: choose at least one switch."
        return respond_done(request, message, reverse("lost_changes"))
    found = decisions.find_undecided().select_related("episode__switch", "lost_version")
    changes = list(found.order_by("-was_engaged", "episode__switch_id")[:SHOWN])
    return render(request, "switches/lost_changes.html", {"changes": changes, "now": now})
