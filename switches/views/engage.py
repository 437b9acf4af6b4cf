"""Engage page: form, preview and result."""

from collections.abc import Mapping
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.jobs.models import Job
from controlplane.core.page_registry import PREVIEW_FIELDS
from controlplane.core.page_responses import PersonRequest, is_in_dialog, show, signed_in
from controlplane.core.reasons import MIN_COLUMNS
from controlplane.notify.delivery import statements
from switches import engage_suggestions, services
from switches.blast import blast_radius
from switches.board import undo_until
from switches.confirmation import require_confirmation
from switches.dry_run import discard_writes
from switches.engage_suggestions import find_similar_keys
from switches.expiry import MAX_DURATION, list_offers
from switches.forms import EngageForm
from switches.ramps import live_ramps
from switches.rules import guard
from switches.rules.break_glass import SafetyRefused, message_key
from switches.rules.evaluation import Refusal
from switches.scopes import (
    GLOBAL,
    SCOPES,
    SEGMENT,
    default_on_expiry,
    names_defaulting_to,
    split_id,
)
from switches.services.registration import find_switch, identify
from switches.views.effect import DIALOG, build_progress

# Repeated engages within this time are treated as a double press.
REPEATED_WITHIN = timedelta(seconds=30)
MAX_REASON_LENGTH = 2000  # Characters taken from the URL.


@signed_in
@require_http_methods(["GET", "POST"])
def engage_page(request: PersonRequest) -> HttpResponse:
    """Show the engage form on GET, and engage the switch on POST.

    The query `?scope=segment&key=finance` selects the switch in the form.
    """
    actor = actor_of(request)
    actor.require("switches:write")
    now = db_now()
    if request.method == "GET":
        form = EngageForm(initial=_get_initial(request))
        require_confirmation(request, form.initial["scope"], now)
        context = _build_context(request, form, now)
        return show(request, "switches/engage.html", context)
    form = EngageForm(request.POST)
    valid = form.is_valid()
    scope, reason = form.get_text("scope"), form.get_text("reason")[:MAX_REASON_LENGTH]
    form_url = f"{reverse('engage')}?{urlencode({'scope': scope, 'reason': reason})}"
    require_confirmation(request, scope, now, next_url=form_url)
    conflict: Conflict | None = None
    try:
        # Evaluate the rules even if a field is invalid, to show all errors at once.
        with nullcontext() if valid else discard_writes():
            done = services.engage(**form.service_arguments(), actor=actor, now=now)
        if valid:
            return _show_engaged(request, done)
    except InvalidInput as error:
        form.add_service_errors(error.errors)
    except Conflict as error:
        if valid and _is_repeated(error, actor.label, form, now):
            arguments = form.service_arguments()
            switch = find_switch(arguments["scope"], arguments["key"])
            if switch is None or switch.episode is None:
                return redirect("switchboard")
            return _show_engaged(request, services.Engagement(switch, switch.episode))
        conflict = error
    context = _build_context(
        request, form, now, conflict=conflict, refusals=_list_refusals(form, conflict)
    )
    status = 409 if conflict else 422
    return show(request, "switches/engage.html", context, status=status)


@signed_in
@require_POST
def engage_preview(request: PersonRequest) -> HttpResponse:
    actor = actor_of(request)
    actor.require("switches:write")
    now = db_now()
    form = EngageForm(request.POST)
    context: dict[str, Any] = {"form": form, "now": now}
    form.is_valid()
    try:
        with discard_writes():
            context["plan"] = services.engage(**form.service_arguments(), actor=actor, now=now)
    except InvalidInput as error:
        form.add_service_errors(error.errors)
    except Conflict as conflict:
        context["conflict"] = conflict
    context |= _blast_context(form.get_text("scope"), form.get_text("key"), now)
    context |= _suggest_reasons_for_new_key(request, form, now)
    return render(request, "switches/_engage_preview.html", context)


def _suggest_reasons_for_new_key(
    request: PersonRequest, form: EngageForm, now: datetime
) -> dict[str, Any]:
    """Return new suggested reasons if the key is not the one that the form shows reasons for."""
    values = {name: form.get_text(name).strip() for name in ("scope", "key", "reason")}
    if values["reason"] == request.POST.get("suggested_reason"):
        values["reason"] = ""
    suggested = _suggest(values, now)
    is_shown = suggested["reasons_for"] == request.POST.get("reasons_for", "")
    return {} if is_shown else suggested


def _suggest(values: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Return suggested switches and reasons, and the switch that the reasons are for."""
    suggested = engage_suggestions.suggest_for_form(values, now)
    has_reasons = "prepared" in suggested
    return {
        **suggested,
        "reasons_for": f"{values['scope']}:{values['key']}" if has_reasons else "",
    }


def _list_refusals(form: EngageForm, conflict: Conflict | None) -> list[Refusal]:
    if isinstance(conflict, SafetyRefused):
        return conflict.refusals
    if form.break_glass() is None:
        return []
    try:
        arguments = form.service_arguments()
        return guard.refusals_to_engage(identify(arguments["scope"], arguments["key"]))
    except InvalidInput:
        return []


def _blast_context(scope: str, key: str, now: datetime) -> dict[str, Any]:
    """Return the blast radius of the switch in the form, and the ramp that an engage would end."""
    try:
        switch_id = identify(scope, GLOBAL.only_key if scope == GLOBAL.name else key.strip())
    except InvalidInput:
        return {"blast": None, "ramp": None}
    more: dict[str, Any] = {}
    for read in PREVIEW_FIELDS.functions():
        more |= read(switch_id, now)
    ramp = live_ramps.find_live_ramp(switch_id)
    return {
        **more,
        "blast": blast_radius(switch_id, now),
        "similar_keys": find_similar_keys(switch_id, now),
        "ramp": None if ramp is None or ramp.job.state == Job.State.PENDING else ramp,
    }


def _get_initial(request: PersonRequest) -> dict[str, str]:
    typed = request.GET.get("key", "")
    scope, key = split_id(typed) or (request.GET.get("scope", ""), typed)
    scope = scope if scope in SCOPES else SEGMENT.name
    key = GLOBAL.only_key if scope == GLOBAL.name else key[:120]
    return {
        "scope": scope,
        "key": key,
        "reason": request.GET.get("reason", "")[:MAX_REASON_LENGTH],
        "how_long": "24h",
        "on_expiry": default_on_expiry(scope),
    }


def _build_context(
    request: PersonRequest, form: EngageForm, now: datetime, **more: Any
) -> dict[str, Any]:
    values = {name: str(form[name].value() or "") for name in ("scope", "key", "reason")}
    return {
        "form": form,
        "now": now,
        "scopes": SCOPES.values(),
        "defaulting_to_hold": names_defaulting_to("hold"),
        "defaulting_to_ramp": names_defaulting_to("ramp"),
        "offers": list_offers(now, now),
        "latest": now + MAX_DURATION,
        "min_columns": MIN_COLUMNS,
        **_blast_context(values["scope"], values["key"], now),
        **_suggest(values, now),
        **more,
    }


def _show_engaged(request: PersonRequest, done: services.Engagement) -> HttpResponse:
    """Show the engaged switch with undo in the dialog; without JavaScript, redirect to its page."""
    if not is_in_dialog(request):
        if done.approval:
            messages.success(request, "Engaged for 24 hours; permanent waits for approval.")
        if done.review:
            message = "Engaged against a safety rule; someone else must review it."
            messages.success(request, f"{message} {done.notice}".strip())
        elif done.notice:
            messages.success(request, done.notice)
        return redirect("switch_page", done.switch.scope, done.switch.key)
    now = db_now()  # The effect is shown as of a time after the commit.
    context = {
        "switch": done.switch,
        "episode": done.episode,
        "approval": done.approval,
        "review": done.review,
        "notice": done.notice,
        "approvers": authority.who_may(Action.APPROVE, done.switch.pk, but=request.user.pk)
        if done.approval
        else [],
        "undo_until": undo_until(done.switch, done.episode, request.user, now),
        "now": now,
        **build_progress(done.switch, now, DIALOG),
    }
    if done.review:
        event_key = message_key(done.episode, done.episode.engaged_at)
        context |= statements.event_context(event_key, now)
    response = show(request, "switches/engage_result.html", context)
    return trigger_client_event(response, "refresh")


def _is_repeated(conflict: Conflict, who: str, form: EngageForm, now: datetime) -> bool:
    present = conflict.extra.get("episode")
    if present is None:
        return False
    age = now - datetime.fromisoformat(present["engaged_at"])
    return (
        present["engaged_by"] == who
        and present["reason"] == form.get_text("reason").strip()
        and age < REPEATED_WITHIN
    )
