"""Forms to create, change and remove an SLO, with previews and backtests before it is saved."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django_htmx.http import trigger_client_event

from controlplane.core.actors import Actor
from controlplane.core.change_views import handle_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.durations import parse
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, show, signed_in
from controlplane.core.reasons import MAX_CHARACTERS
from slo.backtests import trials
from slo.backtests.replay import limit_backtests
from slo.models import Slo
from slo.objectives import documents, rules, services
from slo.objectives.permissions import SCOPE, require_edit

from . import drafts, responses
from .drafts import Draft
from .responses import OptionalReasonForm

SAVE, PREVIEW = "save", "preview"
PARTS = {
    "preview": "slo/_slo_preview.html",
    "rules": "slo/_rules.html",
    "actions": "slo/_action_fields.html",
}
"""Templates of the parts of the form that htmx reloads, by the id of their element."""
KINDS = (
    ("availability", "Availability", "share of successful requests"),
    ("latency", "Latency", "share of requests faster than a threshold"),
    ("ratio", "Ratio", "share of good events of any kind"),
)
EMPTY: Mapping[str, Any] = {
    "kind": "availability",
    "target": 0.999,
    "window_days": 30,
    "source": {"type": "push"},
    "rules": [rule.document() for rule in rules.SEED],
}
BACKTEST_SPANS = {"24h": "a day", "7d": "a week", "30d": "30 days"}
USUAL_SPAN = "7d"


@signed_in
@require_http_methods(["GET", "POST"])
def create_page(request: PersonRequest) -> HttpResponse:
    require_edit(actor_of(request), request.POST.get("name", ""))
    service = request.GET.get("service", "")
    service = service if documents.is_valid_service(service) else ""
    return _handle_form(request, None, Draft.from_document({**EMPTY, "service": service}))


@signed_in
@require_http_methods(["GET", "POST"])
def edit_page(request: PersonRequest, name: str) -> HttpResponse:
    require_edit(actor_of(request), name)
    slo = services.find_slo(name)
    return _handle_form(request, slo, Draft.from_slo(slo))


@signed_in
@require_http_methods(["GET", "POST"])
def remove_page(request: PersonRequest, name: str) -> HttpResponse:
    require_edit(actor_of(request), name)
    slo = services.find_slo(name)
    form = OptionalReasonForm(submitted_data(request))

    def carry_out(actor: Actor, now: datetime) -> str:
        services.remove_slo(name=name, reason=form.get_text("reason"), actor=actor, now=now)
        return f"{name} removed. It is no longer counted or evaluated."

    return handle_change(
        request,
        form,
        carry_out,
        scope=SCOPE,
        template="slo/remove.html",
        context=lambda now: {
            "slo": slo,
            "open_alerts": slo.alert_set.filter(resolved_at__isnull=True).count(),
        },
        back=reverse("slos_page"),
        refused=lambda error: responses.show_refusal(request, error.detail, slo),
    )


def _handle_form(request: PersonRequest, slo: Slo | None, draft: Draft) -> HttpResponse:
    """Show the form on GET, or handle a button on POST.

    The button `do=save` saves the SLO. Other buttons change or check the form, which is then shown
    again; htmx gets only the part that it requested.
    """
    if request.method == "GET":
        return render(request, "slo/edit.html", _form_context(slo, draft, {}))
    do = request.POST.get("do", "")
    draft = Draft.from_post(request.POST, slo).apply_button(do)
    fields = {**draft.document(), "metadata": slo.metadata if slo else None}
    try:
        after = documents.validate(draft.text("name"), fields)
    except InvalidInput as error:
        context = _form_context(slo, draft, error.errors)
    else:
        changes = documents.describe_changes(documents.to_document(slo) if slo else None, after)
        context = {**_form_context(slo, draft, {}), "fields": fields, "changes": changes}
    context |= {"is_validated": True, **_typed_context(request)}
    target = str(request.htmx.target) if request.htmx else ""
    if target in PARTS:
        response = render(request, PARTS[target], context)
        # The preview is refreshed once a row is added or removed.
        return response if target == PREVIEW else trigger_client_event(response, "rows")
    if do != SAVE or context["errors"]:
        status = 422 if do == SAVE else 200
        return render(request, "slo/edit.html", context, status=status)
    return _save(request, slo, draft, context)


def _save(
    request: PersonRequest, slo: Slo | None, draft: Draft, context: dict[str, Any]
) -> HttpResponse:
    """Save the SLO, unless it was changed since the person opened the form."""
    if slo and not context["changes"]:
        messages.info(request, "No changes to save.")
        return redirect("slo_page", name=slo.name)
    name, version = draft.text("name"), request.POST.get("version", "")
    is_number = version.isascii() and version.isdigit() and len(version) < 10
    try:
        if slo is None:
            services.require_new(name)
        services.put_slo(
            name=name,
            fields=context["fields"],
            reason=context["reason"],
            version=(int(version) if is_number else 0) if slo else None,
            actor=actor_of(request),
            now=db_now(),
        )
    except InvalidInput as error:
        invalid_context = _form_context(slo, draft, error.errors) | _typed_context(request)
        return render(request, "slo/edit.html", invalid_context, status=422)
    except Conflict as conflict:
        return responses.show_refusal(request, conflict.detail, slo)
    messages.success(request, f"{name} saved. It applies from the next minute.")
    return redirect("slo_page", name=name)


def _form_context(slo: Slo | None, draft: Draft, errors: drafts.Errors) -> dict[str, Any]:
    meaning, rule_meanings = drafts.describe_draft(draft)
    return {
        "slo": slo,
        "draft": draft,
        "errors": errors,
        "by_field": drafts.errors_by_field(errors),
        "unplaced": drafts.unplaced_errors(errors),
        "rules": drafts.make_rows("rules", draft.rules, errors, rule_meanings),
        "actions": drafts.make_rows("actions", draft.actions, errors),
        "meaning": meaning,
        "presets": rules.PRESETS,
        "kinds": KINDS,
        "action_triggers": documents.ACTION_TRIGGERS.items(),
        "version": slo.version if slo else "",
        "here": reverse("slo_edit", args=[slo.name]) if slo else reverse("slo_new"),
    }


def _typed_context(request: PersonRequest) -> dict[str, Any]:
    """Return the texts that a shown form keeps: the reason, and the version of the opened SLO."""
    return {
        "version": request.POST.get("version", ""),
        "reason": request.POST.get("reason", "")[:MAX_CHARACTERS],
    }


@signed_in
@require_http_methods(["GET", "POST"])
def backtest_page(request: PersonRequest, name: str) -> HttpResponse:
    """Show a backtest of the SLO's rules on GET, or of the rules in a posted form on POST."""
    slo = services.find_slo(name)
    actor_of(request).require("slo:read")
    data = request.POST or request.GET
    present = Draft.from_slo(slo)
    draft = Draft.from_post(request.POST, slo) if request.method == "POST" else present
    span = data.get("span", "")
    span = span if span in BACKTEST_SPANS else USUAL_SPAN
    context = {
        "slo": slo,
        "draft": draft,
        "span": span,
        "spans": BACKTEST_SPANS.items(),
        "hidden": list(draft.hidden()),
        "is_changed": draft != present,
    }
    try:
        objective = documents.to_objective(documents.validate(name, draft.document()))
    except InvalidInput as error:
        context |= {"errors": error.errors}
        return show(request, "slo/backtest.html", context, status=422)
    with limit_backtests(actor_of(request)):
        result = trials.run_trials(slo, objective, parse(span), db_now())
    return show(request, "slo/backtest.html", {**context, "result": result})
