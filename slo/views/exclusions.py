"""Forms to add and remove excluded spans, with a preview of the effect on the budget."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.change_views import ServiceForm, handle_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, signed_in
from controlplane.core.reasons import MAX_CHARACTERS
from slo.arithmetic.minutes import due_minute, last_ended, minute_of
from slo.evaluation import budgets
from slo.models import Exclusion, Slo
from slo.models.objective import slo_resource
from slo.objectives import exclusions, services
from slo.objectives.permissions import SCOPE
from slo.templatetags.alerts import share

from . import responses
from .responses import OptionalReasonForm

PREVIEW = "outlook"
FIELD_FORMAT = "%Y-%m-%dT%H:%M"


class ExclusionForm(ServiceForm):
    starts_at = forms.DateTimeField(error_messages={"required": "Enter when it began."})
    ends_at = forms.DateTimeField(error_messages={"required": "Enter when it ended."})
    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)


@signed_in
@require_http_methods(["GET", "POST"])
def exclude_page(request: PersonRequest, name: str) -> HttpResponse:
    """Show the form to exclude a time span, or save the exclusion; show only a preview to htmx."""
    authority.require(actor_of(request), Action.OVERRIDE, slo_resource(name))
    slo = services.find_slo(name)
    initial = {key: _local_moment(request.GET.get(key, "")) for key in ("starts_at", "ends_at")}
    form = ExclusionForm(submitted_data(request), initial=initial)
    if request.htmx and request.htmx.target == PREVIEW:
        actor_of(request).require(SCOPE)
        return render(request, "slo/_exclusion_preview.html", _preview_context(slo, form, db_now()))

    def carry_out(actor: Actor, now: datetime) -> str:
        starts_at, ends_at = form.cleaned_data["starts_at"], form.cleaned_data["ends_at"]
        reason = form.get_text("reason")
        done = exclusions.add_exclusion(
            name=name, starts_at=starts_at, ends_at=ends_at, reason=reason, actor=actor, now=now
        )
        return f"Exclusion added: {_describe_change(done)}."

    return handle_change(
        request,
        form,
        carry_out,
        scope=SCOPE,
        template="slo/exclusion_form.html",
        context=lambda now: (
            {"slo": slo, "zone": timezone.get_current_timezone_name()}
            | _preview_context(slo, form, now)
        ),
        back=reverse("slo_page", args=[name]),
        refused=lambda error: responses.show_refusal(request, error.detail, slo),
    )


@signed_in
@require_http_methods(["GET", "POST"])
def remove_exclusion_page(request: PersonRequest, name: str, exclusion_id: int) -> HttpResponse:
    authority.require(actor_of(request), Action.OVERRIDE, slo_resource(name))
    slo = services.find_slo(name)
    exclusion = get_object_or_404(Exclusion, slo=slo, pk=exclusion_id)
    form = OptionalReasonForm(submitted_data(request))

    def carry_out(actor: Actor, now: datetime) -> str:
        reason = form.get_text("reason")
        done = exclusions.remove_exclusion(
            name=name, exclusion_id=exclusion_id, reason=reason, actor=actor, now=now
        )
        return f"Exclusion removed: {_describe_change(done)}."

    return handle_change(
        request,
        form,
        carry_out,
        scope=SCOPE,
        template="slo/exclusion_remove.html",
        context=lambda now: {"slo": slo, "exclusion": exclusion},
        back=reverse("slo_page", args=[name]),
        refused=lambda error: responses.show_refusal(request, error.detail, slo),
    )


def _preview_context(slo: Slo, form: ServiceForm, now: datetime) -> dict[str, Any]:
    """Return the context of an exclusion's preview; `effect` is None for an invalid form."""
    starts_at = ends_at = now
    if form.is_bound and form.is_valid():
        starts_at, ends_at = form.cleaned_data["starts_at"], form.cleaned_data["ends_at"]
    if ends_at <= starts_at:
        return {"slo": slo, "effect": None}
    at, span = due_minute(now), (last_ended(starts_at), minute_of(ends_at))
    return {
        "slo": slo,
        "effect": budgets.estimate_exclusion(slo, span, at),
        "lasts": span[1] - span[0],
        "is_future": span[0] >= at,
    }


def _describe_change(done: exclusions.ExclusionOutcome) -> str:
    before, after = done.before["remaining_ratio"], done.after["remaining_ratio"]
    if before is None or after is None:
        return "the budget is unknown"
    return f"budget left {share(after)}, before {share(before)}"


def _local_moment(text: str) -> str:
    """Convert a URL's ISO 8601 time to the form's text in local time; empty if it is invalid."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return ""
    if timezone.is_naive(at) or abs(at - timezone.now()) > timedelta(days=5000):
        return ""
    return f"{timezone.localtime(at):{FIELD_FORMAT}}"
