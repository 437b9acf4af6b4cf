"""Actions on a switch: extend, re-confirm, acknowledge, describe and undo."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from controlplane.core.canonical import timestamp_or_none
from controlplane.core.change_views import ServiceForm, handle_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, DomainError, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, respond_done, show, signed_in
from controlplane.core.reasons import MIN_COLUMNS
from switches import services
from switches.confirmation import require_confirmation
from switches.expiry import MAX_DURATION, PERMANENT, list_offers
from switches.forms import AcknowledgeForm, DescribeForm, ExtendForm, ReasonForm
from switches.models import Switch
from switches.services.registration import find_or_new

Target = dict[str, Any]
"""The arguments that all services take: `scope`, `key`, `actor` and `now`."""


@signed_in
@require_http_methods(["GET", "POST"])
def extend(request: PersonRequest, scope: str, key: str) -> HttpResponse:
    form = ExtendForm(submitted_data(request), initial={"how_long": "24h"})
    # Confirm when the form opens, before anybody types; only a permanent extension needs it later.
    if request.method == "GET" or request.POST.get("how_long") == PERMANENT:
        require_confirmation(request, scope, db_now())

    def carry_out(target: Target) -> str:
        episode = read_switch(scope, key).episode
        present = episode.expires_at if episode else None
        extended = services.extend(**target, **form.service_arguments(target["now"], present))
        if extended.approval:
            return f"Approval requested to keep {scope}:{key} engaged permanently."
        until = f"{extended.episode.expires_at:%d %b %H:%M} UTC"
        return f"{scope}:{key} stays engaged until {until}. {extended.notice}".strip()

    return _handle_action(request, scope, key, form, "switches/extend.html", carry_out)


@signed_in
@require_http_methods(["GET", "POST"])
def reconfirm(request: PersonRequest, scope: str, key: str) -> HttpResponse:
    form = ReasonForm(submitted_data(request))

    def carry_out(target: Target) -> str:
        done = services.reconfirm(**target, reason=form.get_text("reason"))
        due = done.episode.reconfirm_due_at
        return f"{scope}:{key} re-confirmed. Re-confirm it again by {due:%d %b %H:%M} UTC."

    return _handle_action(request, scope, key, form, "switches/reconfirm.html", carry_out)


@signed_in
@require_http_methods(["GET", "POST"])
def acknowledge(request: PersonRequest, scope: str, key: str) -> HttpResponse:
    form = AcknowledgeForm(submitted_data(request))

    def carry_out(target: Target) -> str:
        services.acknowledge(**target, comment=form.get_text("comment"))
        return f"You acknowledged {scope}:{key}. Escalation is paused for 24 hours."

    return _handle_action(request, scope, key, form, "switches/acknowledge.html", carry_out)


@signed_in
@require_http_methods(["GET", "POST"])
def describe(request: PersonRequest, scope: str, key: str) -> HttpResponse:
    switch = read_switch(scope, key)
    fields = {name: getattr(switch, name) for name in DescribeForm.base_fields}
    form = DescribeForm(submitted_data(request), initial=fields)

    def carry_out(target: Target) -> str:
        changes = {name: form.get_text(name).strip() for name in fields}
        services.describe(**target, changes=changes)
        return f"Description of {scope}:{key} saved."

    return _handle_action(request, scope, key, form, "switches/describe.html", carry_out)


@signed_in
@require_POST
def undo(request: PersonRequest, scope: str, key: str) -> HttpResponse:
    read_switch(scope, key)
    try:
        services.undo(
            scope=scope,
            key=key,
            actor=actor_of(request),
            now=db_now(),
            if_newest="if_newest" in request.POST,
        )
    except Conflict as conflict:
        return show_refusal(request, f"{scope}:{key}", "Not undone", conflict)
    message = f"Undone: {scope}:{key} is released; services are told to allow its traffic."
    return respond_done(request, message, reverse("switch_page", args=[scope, key]))


def _handle_action(
    request: PersonRequest,
    scope: str,
    key: str,
    form: ServiceForm,
    template: str,
    carry_out: Callable[[Target], str],
) -> HttpResponse:
    switch = read_switch(scope, key)
    expires_at = switch.episode.expires_at if switch.episode else None
    return handle_change(
        request,
        form,
        lambda actor, now: carry_out({"scope": scope, "key": key, "actor": actor, "now": now}),
        scope="switches:write",
        template=template,
        context=lambda now: {
            "switch": switch,
            "episode": switch.episode,
            "offers": list_offers(max(expires_at or now, now), now),
            "in_a_week": now + timedelta(days=7),
            "latest": now + MAX_DURATION,
            "present": timestamp_or_none(expires_at) or "",
            "min_columns": MIN_COLUMNS,
        },
        back=reverse("switch_page", args=[scope, key]),
        refused=lambda error: show_refusal(request, f"{scope}:{key}", "Nothing changed", error),
    )


def show_refusal(
    request: PersonRequest, switch_id: str, heading: str, conflict: DomainError
) -> HttpResponse:
    context = {"heading": heading, "detail": conflict.detail, "target": switch_id}
    return show(request, "core/notice.html", context, status=409)


def read_switch(scope: str, key: str) -> Switch:
    try:
        return find_or_new(scope, key)
    except InvalidInput as error:
        raise Http404 from error
