"""Forms that set, undo or remove an override, or remove a dependency."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import trigger_client_event

from breakers import names
from breakers.message_facts import dependency_path, page_path
from breakers.models import Dependency, Override
from breakers.services import override_undo, overrides, registry
from breakers.services.permissions import SCOPE, get_set_action, require_edit, require_end
from breakers.states import dependency_status
from breakers.states.traffic import read_traffic
from breakers.templatetags.breakers import FORCE_LABELS, MODES
from breakers.views.forms import HOW_LONG, OTHER, BreakerReasonForm, OverrideForm
from controlplane.core import durations
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.change_views import (
    CarryOut,
    ServiceForm,
    attempt_change,
    handle_change,
    submitted_data,
)
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import (
    PersonRequest,
    is_in_dialog,
    render_live,
    respond_done,
    show,
    signed_in,
)
from controlplane.core.reasons import MIN_COLUMNS

from .dependency import authority_context, find_or_404, override_context

CALLERS_SHOWN = 20


@signed_in
@require_http_methods(["GET", "POST"])
def set_override(request: PersonRequest, caller: str, callee: str) -> HttpResponse:
    """Show the form of an override; in the dialog, its success shows the override with undo."""
    actor = actor_of(request)
    actor.require(SCOPE)
    dependency, now = find_or_404(caller, callee), db_now()
    form = OverrideForm(submitted_data(request), initial={"how_long": "1h"})

    def force() -> HttpResponse:
        arguments = form.service_arguments()
        made = overrides.set_override(
            caller=caller, callee=callee, **arguments, actor=actor, now=now
        )
        return _respond_forced(request, made, now)

    done = attempt_change(
        form, force, lambda error: render_refusal(request, dependency, error.detail)
    )
    if done is not None:
        return done
    context = {
        **_change_context(dependency, now),
        **_consequence_context(dependency, now),
        **_choices_context(actor, dependency, now),
        "form": form,
        "now": now,
    }
    status = 422 if form.is_bound else 200
    return show(request, "breakers/override.html", context, status=status)


@signed_in
@require_http_methods(["GET", "POST"])
def remove_override(request: PersonRequest, caller: str, callee: str) -> HttpResponse:
    if (present := _find_live(find_or_404(caller, callee))) is not None:
        require_end(actor_of(request), present, present.dependency)
    form = BreakerReasonForm(submitted_data(request))

    def carry_out(actor: Actor, now: datetime) -> str:
        reason = form.get_text("reason")
        overrides.remove_override(caller=caller, callee=callee, reason=reason, actor=actor, now=now)
        return f"Override of {caller} → {callee} removed; its breakers start closed."

    return _handle_change(request, caller, callee, form, "breakers/override_remove.html", carry_out)


@signed_in
@require_POST
def undo_override(request: PersonRequest, caller: str, callee: str) -> HttpResponse:
    dependency = find_or_404(caller, callee)
    try:
        restored = override_undo.undo_override(
            caller=caller,
            callee=callee,
            actor=actor_of(request),
            now=db_now(),
            if_newest="if_newest" in request.POST,
        )
    except (Conflict, NotFound) as refusal:
        return render_refusal(request, dependency, refusal.detail, heading="Not undone")
    follows = f"{MODES[restored.mode][0].lower()} again" if restored else "no longer forced"
    message = f"Undone: {caller} → {callee} is {follows}."
    return respond_done(request, message, dependency_path(caller, callee))


@signed_in
@require_GET
def override_status(request: PersonRequest, caller: str, callee: str) -> HttpResponse:
    """Render the live override and its confirmations, for the dialog that forced it."""
    dependency, now = find_or_404(caller, callee), db_now()
    present = _find_live(dependency)
    if present is None:
        return HttpResponse(status=204)
    context = {"now": now, "place": "dialog", **override_context(present, now)}
    return render_live(request, "breakers/_override.html", context)


@signed_in
@require_http_methods(["GET", "POST"])
def remove_dependency(request: PersonRequest, caller: str, callee: str) -> HttpResponse:
    require_edit(actor_of(request), names.dependency_resource(caller, callee))
    form = BreakerReasonForm(submitted_data(request))

    def carry_out(actor: Actor, now: datetime) -> str:
        reason = form.get_text("reason")
        registry.remove_dependency(
            caller=caller, callee=callee, reason=reason, actor=actor, now=now
        )
        return f"{caller} → {callee} is no longer registered."

    return _handle_change(request, caller, callee, form, "breakers/remove.html", carry_out)


def _respond_forced(request: PersonRequest, made: Override, now: datetime) -> HttpResponse:
    dependency = made.dependency
    if not is_in_dialog(request):
        word = MODES[made.mode][0].lower()
        lasts = durations.format_readable(made.expires_at - now)
        message = f"{dependency.label} is {word} for {lasts}."
        page = page_path(dependency)
        return respond_done(request, message, page)
    context = {
        "dependency": dependency,
        "now": now,
        "undo_until": override_undo.find_undo_until(made, actor_of(request).label, now),
        **override_context(made, now),
    }
    response = show(request, "breakers/override_result.html", context)
    return trigger_client_event(response, "refresh")


def _find_live(dependency: Dependency) -> Override | None:
    live = Override.objects.select_related("dependency")
    return live.filter(dependency=dependency, ended_at__isnull=True).first()


def _consequence_context(dependency: Dependency, now: datetime) -> dict[str, Any]:
    """Return what the form says about the instances, calls and users that an override affects."""
    (status,) = dependency_status.load_statuses([dependency], now)
    return {
        "status": status,
        "callers": dependency_status.list_instances(dependency, now, most=CALLERS_SHOWN),
        "traffic": read_traffic(dependency, now),
        "fallback": dependency.document.get("fallback") or {},
        "labels": [(mode, label.format(dependency.label)) for mode, label in FORCE_LABELS.items()],
    }


def _choices_context(actor: Actor, dependency: Dependency, now: datetime) -> dict[str, Any]:
    """Return the modes with the reasons why the actor can't choose them, "" if they can."""
    context = authority_context(actor, dependency, _find_live(dependency))
    decisions = {Action.ENGAGE: context["may_stop"], Action.OVERRIDE: context["may_override"]}
    return {
        **context,
        "choices": [
            (mode, *MODES[mode], decisions[get_set_action(mode)]) for mode in Override.Mode.values
        ],
    }


def _handle_change(
    request: PersonRequest,
    caller: str,
    callee: str,
    form: ServiceForm,
    template: str,
    carry_out: CarryOut,
) -> HttpResponse:
    dependency = find_or_404(caller, callee)
    return handle_change(
        request,
        form,
        carry_out,
        scope=SCOPE,
        template=template,
        context=lambda now: _change_context(dependency, now),
        back=dependency_path(caller, callee),
        refused=lambda error: render_refusal(request, dependency, error.detail),
    )


def _change_context(dependency: Dependency, now: datetime) -> dict[str, Any]:
    return {
        "dependency": dependency,
        "how_longs": [(text, word, now + durations.parse(text)) for text, word in HOW_LONG.items()],
        "other": OTHER,
        "min_columns": MIN_COLUMNS,
        "latest": now + timedelta(days=30),
        **override_context(_find_live(dependency), now),
    }


def render_refusal(
    request: PersonRequest,
    dependency: Dependency,
    detail: str,
    *,
    heading: str = "Nothing changed",
) -> HttpResponse:
    context = {"heading": heading, "detail": detail, "dependency": dependency}
    return show(request, "breakers/notice.html", context, status=409)
