"""The Notifications page, and the forms to change targets and routes."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from controlplane.core.actors import Actor
from controlplane.core.change_views import submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, InvalidInput, TooManyRequests
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import (
    PersonRequest,
    is_in_dialog,
    page_view,
    respond_done,
    show,
    show_refusal,
)
from controlplane.core.roles import Power
from controlplane.notify.models.targets import Route, Target

from . import matrix, services, usage
from .fields import TargetRequest
from .forms import FORMS, RouteForm, TargetForm, initial_values
from .services import NewSecret

PAGE = "/targets/"
TITLES = {
    "person": "a person",
    "channel": "a channel",
    "on_call": "an on-call rotation",
    "escalation": "an escalation",
}


@page_view("GET")
def targets_page(request: PersonRequest) -> HttpResponse:
    now = db_now()
    pages = {name: request.GET.get(name) for name in ("page", "routes")}
    shown = matrix.page_context(now, **pages)
    return render(request, "core/targets.html", {"now": now, **shown})


@page_view("GET", "POST")
def new_target(request: PersonRequest, kind: str) -> HttpResponse:
    actor = _require_admin(request)
    if kind not in FORMS:
        raise Http404
    start = {
        "time_zone": request.user.time_zone,
        "rotation_days": 7,
        "transport": request.GET.get("transport", ""),
    }
    form = FORMS[kind](submitted_data(request), initial=start)
    context = {"kind": kind, "heading": f"Add {TITLES[kind]}"}
    return _save_or_show(
        request,
        form,
        lambda asked: services.create_target(asked=asked, actor=actor, now=db_now()),
        "added",
        context,
    )


@page_view("GET", "POST")
def change_target(request: PersonRequest, target_id: int) -> HttpResponse:
    """Change a target. Its kind can change too, except from or to an escalation."""
    actor = _require_admin(request)
    target = services.get_target(target_id)
    kind = request.GET.get("kind", target.kind)
    if kind not in FORMS:
        raise Http404
    initial = {**initial_values(target), "transport": request.GET.get("transport", "")}
    form = FORMS[kind](submitted_data(request), initial=initial)
    other_kinds = [] if target.kind == Target.Kind.ESCALATION else ["person", "channel", "on_call"]
    context = {
        "target": target,
        "kind": kind,
        "kinds": [(each, TITLES[each]) for each in other_kinds],
        "heading": f"Change {target.name}",
    }

    def change(asked: TargetRequest) -> tuple[Target, NewSecret | None]:
        seen = form.get_text("seen")
        return services.change_target(
            target_id=target_id, asked=asked, seen=seen, actor=actor, now=db_now()
        )

    try:
        return _save_or_show(request, form, change, "changed", context)
    except Conflict as conflict:
        return show_refusal(request, "Nothing changed", conflict, "targets_page")


@page_view("GET", "POST")
def remove_target(request: PersonRequest, target_id: int) -> HttpResponse:
    actor = _require_admin(request)
    target = services.get_target(target_id)
    if request.method == "POST":
        try:
            services.remove_target(target_id=target_id, actor=actor, now=db_now())
        except Conflict as conflict:
            return show_refusal(request, "Not removed", conflict, "targets_page")
        return respond_done(request, f"{target.name} removed.", PAGE)
    context = {"target": target, "users": usage.list_uses([target])[target.pk]}
    return show(request, "core/target_remove.html", context)


@page_view("POST")
def test_target(request: PersonRequest, target_id: int) -> HttpResponse:
    try:
        sent = services.send_test(target_id=target_id, actor=actor_of(request), now=db_now())
    except (Conflict, TooManyRequests) as error:
        status = Conflict.status if is_in_dialog(request) else error.status
        return show_refusal(request, "Nothing was sent", error, "targets_page", status=status)
    query = urlencode({"event_key": sent.event_key, "target": sent.target.name})
    return redirect(f"{reverse('event_deliveries')}?{query}")


@page_view("GET", "POST")
def new_route(request: PersonRequest) -> HttpResponse:
    actor = _require_admin(request)
    form = RouteForm(submitted_data(request))
    if form.is_valid():
        try:
            route = services.add_route(
                event=form.get_text("event"),
                scope=form.get_text("scope"),
                severity=form.get_text("severity"),
                target=int(form.get_text("target")),
                actor=actor,
                now=db_now(),
            )
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        except Conflict as conflict:
            form.add_service_errors({"target": [conflict.detail]})
        else:
            return respond_done(request, f"{route.event} now goes to {route.target.name}.", PAGE)
    status = 422 if form.is_bound else 200
    return show(request, "core/route_form.html", {"form": form}, status=status)


@page_view("GET", "POST")
def remove_route(request: PersonRequest, route_id: int) -> HttpResponse:
    actor = _require_admin(request)
    route = Route.objects.select_related("target").filter(pk=route_id).first()
    if route is None:
        raise Http404
    if request.method == "POST":
        services.remove_route(route_id=route_id, actor=actor, now=db_now())
        return respond_done(request, f"{route.event} no longer goes to {route.target.name}.", PAGE)
    return show(request, "core/target_remove.html", {"route": route, "target": route.target})


def _require_admin(request: PersonRequest) -> Actor:
    actor = actor_of(request)
    actor.require_power(Power.ADMINISTER)
    return actor


def _save_or_show(
    request: PersonRequest,
    form: TargetForm,
    save: Callable[[TargetRequest], tuple[Target, NewSecret | None]],
    outcome: str,
    context: dict[str, Any],
) -> HttpResponse:
    """Save the target if the form is valid, else show the form with its errors.

    A generated secret is shown in this response only; if there is none, redirect with a message.
    """
    if form.is_valid():
        requested = form.read_request(context["kind"])
        try:
            services.look_up(requested.settings)
            target, secret = save(requested)
        except InvalidInput as error:
            form.add_service_errors(error.errors)
        else:
            if secret is None:
                return respond_done(request, f"{target.name} {outcome}.", PAGE)
            return show(request, "core/target_secret.html", {"target": target, "secret": secret})
    status = 422 if form.is_bound else 200
    return show(request, "core/target_form.html", {"form": form, **context}, status=status)
