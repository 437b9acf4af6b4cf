"""Forms to clear the sample configuration and to load it again."""

from datetime import datetime

from django import forms
from django.http import HttpResponse
from django.urls import reverse

from controlplane.core.actors import Actor
from controlplane.core.change_views import ServiceForm, handle_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.configuration import samples
from controlplane.core.configuration.readers import NEW
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, page_view, redirect_done, show_refusal
from controlplane.core.reasons import MAX_CHARACTERS
from controlplane.core.roles import Power

PAGE = "first_steps_page"
SCOPE = "breakers:write"


class ClearForm(ServiceForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS * 2, required=False)


@page_view("GET", "POST")
def clear_samples(request: PersonRequest) -> HttpResponse:
    """Show what clearing removes and keeps; after a POST with a reason, clear the samples."""
    actor_of(request).require_power(Power.ADMINISTER)
    form = ClearForm(submitted_data(request))
    items = samples.list_items()
    removed = [item for item in items if not item.kept]

    def carry_out(actor: Actor, now: datetime) -> str:
        cleared = samples.clear(reason=form.get_text("reason"), actor=actor, now=now)
        kept = sum(bool(item.kept) for item in cleared)
        return f"{len(cleared) - kept} samples removed, {kept} kept."

    return handle_change(
        *(request, form, carry_out),
        scope=SCOPE,
        template="core/samples_clear.html",
        context=lambda _now: {
            "removed": removed,
            "kept": [item for item in items if item.kept],
            "counts": samples.describe_counts(removed),
        },
        back=reverse(PAGE),
        refused=lambda error: show_refusal(request, "Nothing was removed", error, PAGE),
    )


@page_view("POST")
def load_samples(request: PersonRequest) -> HttpResponse:
    loaded = samples.load(actor=actor_of(request), now=db_now())
    return redirect_done(request, f"{loaded.count(NEW)} samples loaded.", reverse(PAGE))
