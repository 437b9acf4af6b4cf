"""Forms that set or remove an override, or remove a dependency."""

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from breakers.models import Dependency, Override
from breakers.services import overrides, registry
from breakers.services.permissions import SCOPE, require_admin
from breakers.templatetags.breakers import MODES
from breakers.views.forms import HOW_LONG, OTHER, BreakerReasonForm, OverrideForm
from controlplane.core import durations
from controlplane.core.actors import Actor
from controlplane.core.change_views import CarryOut, ServiceForm, handle_change, submitted_data
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, show, signed_in
from controlplane.core.reasons import MIN_COLUMNS

from .dependency import find_or_404, override_context


@signed_in
@require_http_methods(["GET", "POST"])
def set_override(request: PersonRequest, caller: str, callee: str) -> HttpResponse:
    form = OverrideForm(submitted_data(request), initial={"how_long": "1h"})

    def carry_out(actor: Actor, now: datetime) -> str:
        arguments = form.service_arguments()
        made = overrides.set_override(
            caller=caller, callee=callee, **arguments, actor=actor, now=now
        )
        word = MODES[made.mode][0].lower()
        lasts = durations.format_readable(made.expires_at - now)
        return f"{caller} → {callee} is {word} for {lasts}; services are told now."

    return _handle_change(request, caller, callee, form, "breakers/override.html", carry_out)


@signed_in
@require_http_methods(["GET", "POST"])
def remove_override(request: PersonRequest, caller: str, callee: str) -> HttpResponse:
    form = BreakerReasonForm(submitted_data(request))

    def carry_out(actor: Actor, now: datetime) -> str:
        reason = form.get_text("reason")
        overrides.remove_override(caller=caller, callee=callee, reason=reason, actor=actor, now=now)
        return f"Nothing is forced upon {caller} → {callee} any more; its breakers begin closed."

    return _handle_change(request, caller, callee, form, "breakers/override_remove.html", carry_out)


@signed_in
@require_http_methods(["GET", "POST"])
def remove_dependency(request: PersonRequest, caller: str, callee: str) -> HttpResponse:
    require_admin(actor_of(request))
    form = BreakerReasonForm(submitted_data(request))

    def carry_out(actor: Actor, now: datetime) -> str:
        reason = form.get_text("reason")
        registry.remove_dependency(
            caller=caller, callee=callee, reason=reason, actor=actor, now=now
        )
        return f"{caller} → {callee} is no longer registered."

    return _handle_change(request, caller, callee, form, "breakers/remove.html", carry_out)


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
        back=reverse("dependency_page", args=[caller, callee]),
        refused=lambda error: render_refusal(request, dependency, error.detail),
    )


def _change_context(dependency: Dependency, now: datetime) -> dict[str, Any]:
    present = Override.objects.filter(dependency=dependency, ended_at__isnull=True).first()
    return {
        "dependency": dependency,
        "modes": [(mode, *MODES[mode]) for mode in Override.Mode.values],
        "how_longs": [(text, word, now + durations.parse(text)) for text, word in HOW_LONG.items()],
        "other": OTHER,
        "min_columns": MIN_COLUMNS,
        "latest": now + timedelta(days=30),
        **override_context(present, now),
    }


def render_refusal(request: PersonRequest, dependency: Dependency, detail: str) -> HttpResponse:
    context = {"heading": "Nothing was changed", "detail": detail, "dependency": dependency}
    return show(request, "breakers/notice.html", context, status=409)
