"""Trips page: waiting trips, policies and all trips."""

from datetime import datetime
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from controlplane.core.actors import Actor
from controlplane.core.change_views import ServiceForm, handle_change, submitted_data
from controlplane.core.clock import db_now
from controlplane.core.errors import DomainError, InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.page_responses import PersonRequest, respond_done, show_refusal, signed_in
from controlplane.core.reasons import MAX_CHARACTERS
from controlplane.core.roles import Power
from switches import page_updates
from switches.models import Episode, Trip, TripPolicy
from switches.scopes import SCOPES
from switches.trips import history, notifications, policies, resolution

SHOWN = 25
SHOWN_WAITING = 50
SHOWN_OF_SWITCH = 5


class DismissForm(ServiceForm):
    reason = forms.CharField(max_length=MAX_CHARACTERS, required=False)


class PolicyForm(ServiceForm):
    """Fields of one trip policy; `sources` has one pattern per line."""

    trigger = forms.CharField(max_length=200, required=False)
    title = forms.CharField(max_length=400, required=False)
    sources = forms.CharField(max_length=4000, required=False)
    scopes = forms.MultipleChoiceField(choices=SCOPES.choices, required=False)
    gate = forms.ChoiceField(choices=TripPolicy.Gate.choices, required=False)
    response = forms.CharField(max_length=400, required=False)
    budget_per_hour = forms.IntegerField(required=False)
    longest_minutes = forms.IntegerField(required=False)
    position = forms.IntegerField(required=False, min_value=1, max_value=1000)
    seen = forms.CharField(max_length=64, required=False)

    def service_arguments(self) -> dict[str, Any]:
        patterns = (line.strip() for line in self.get_text("sources").splitlines())
        fields = {name: self.cleaned_data[name] for name in policies.FIELDS}
        return {**fields, "sources": [pattern for pattern in patterns if pattern]}


class TripSearch(forms.Form):
    """Filters of the list of trips; invalid filters are ignored."""

    q = forms.CharField(required=False, max_length=131)
    outcome = forms.CharField(required=False, max_length=10)
    before = forms.IntegerField(required=False, min_value=1, max_value=2**62)


@signed_in
@require_GET
def trips_page(request: PersonRequest) -> HttpResponse:
    search = TripSearch(request.GET)
    search.is_valid()
    found, older = page_updates.take_page(_filter_trips(search.cleaned_data), SHOWN)
    waiting = resolution.list_waiting()
    engaged = Episode.objects.filter(ended_at__isnull=True, allow_percent=0)
    switches = [trip.switch for trip in waiting[:SHOWN_WAITING]]
    stopped = set(engaged.filter(switch__in=switches).values_list("switch", flat=True))
    context = {
        "now": db_now(),
        "search": search,
        "outcomes": Trip.Outcome.values,
        "policies": history.list_policies(),
        "waiting": [
            (trip, notifications.engage_path(trip), trip.switch in stopped)
            for trip in waiting[:SHOWN_WAITING]
        ],
        "waiting_more": max(0, len(waiting) - SHOWN_WAITING),
        "trips": found,
        "older": older,
        "newest": not request.GET.get("before"),
        "is_filtered": bool(search.cleaned_data.get("q") or search.cleaned_data.get("outcome")),
    }
    return render(request, "switches/trips.html", context)


def switch_context(switch_id: str) -> dict[str, Any]:
    rows = Trip.objects.filter(switch=switch_id).select_related("policy").order_by("-id")
    found, more = page_updates.take_page(rows, SHOWN_OF_SWITCH)
    return {"trips": found, "more_trips": more is not None}


@signed_in
@require_http_methods(["GET", "POST"])
def dismiss_trip(request: PersonRequest, trip_id: int) -> HttpResponse:
    actor_of(request).require("switches:write")
    form = DismissForm(submitted_data(request))
    trip = Trip.objects.filter(pk=trip_id).select_related("policy").first()
    if trip is None:
        raise Http404

    def carry_out(actor: Actor, now: datetime) -> str:
        reason = form.get_text("reason")
        resolution.dismiss_trip(trip_id=trip_id, reason=reason, actor=actor, now=now)
        return f"Trip of {trip.switch} dismissed."

    return handle_change(
        request,
        form,
        carry_out,
        scope="switches:write",
        template="switches/trip_dismiss.html",
        context=lambda now: {"trip": trip},
        back=reverse("trips_page"),
        refused=lambda error: _show_refusal(request, error),
    )


@signed_in
@require_http_methods(["GET", "POST"])
def new_policy(request: PersonRequest) -> HttpResponse:
    rows = len(history.list_policies())
    usual = {**policies.DEFAULTS, "gate": TripPolicy.Gate.PERSON, "position": rows + 1}
    return _handle_form(request, "", PolicyForm(submitted_data(request), initial=usual))


@signed_in
@require_http_methods(["GET", "POST"])
def change_policy(request: PersonRequest, trigger: str) -> HttpResponse:
    rows = history.list_policies()
    place = next((at for at, row in enumerate(rows) if row.trigger == trigger), None)
    if place is None:
        raise Http404
    fields = policies.policy_fields(rows[place])
    initial = {
        **fields,
        "sources": "\n".join(fields["sources"]),
        "position": place + 1,
        "seen": policies.policy_digest(fields, place + 1),
    }
    return _handle_form(request, trigger, PolicyForm(submitted_data(request), initial=initial))


@signed_in
@require_http_methods(["POST"])
def remove_policy(request: PersonRequest, trigger: str) -> HttpResponse:
    try:
        policies.remove_policy(trigger=trigger, actor=actor_of(request), now=db_now())
    except InvalidInput as error:
        return _show_refusal(request, error)
    return respond_done(request, f"The policy {trigger} no longer exists.", reverse("trips_page"))


def _show_refusal(request: PersonRequest, error: DomainError) -> HttpResponse:
    return show_refusal(request, "Nothing changed", error, "trips_page", status=409)


def _handle_form(request: PersonRequest, trigger: str, form: PolicyForm) -> HttpResponse:
    actor_of(request).require_power(Power.ADMINISTER)

    def save(actor: Actor, now: datetime) -> str:
        fields = form.service_arguments()
        if trigger:
            fields["trigger"] = trigger  # The trigger identifies the row and can't change.
        policies.put_policy(
            trigger=trigger,
            fields=fields,
            position=form.cleaned_data.get("position") or 1,
            digest=form.get_text("seen"),
            actor=actor,
            now=now,
        )
        return "Trip policies saved."

    return handle_change(
        request,
        form,
        save,
        scope="switches:write",
        template="switches/trips_policy.html",
        context=lambda _now: {
            "trigger": trigger,
            "scopes": SCOPES.names,
            "chosen": form["scopes"].value() or [],
            "gates": TripPolicy.Gate.values,
        },
        back=reverse("trips_page"),
        refused=lambda error: _show_refusal(request, error),
    )


def _filter_trips(filters: dict[str, Any]) -> QuerySet[Trip]:
    rows = Trip.objects.select_related("policy").order_by("-id")
    if text := (filters.get("q") or "").replace("\x00", ""):
        rows = rows.filter(
            Q(switch__icontains=text) | Q(source__icontains=text) | Q(fingerprint=text)
        )
    if (outcome := filters.get("outcome")) in Trip.Outcome.values:
        rows = rows.filter(outcome=outcome)
    if before := filters.get("before"):
        rows = rows.filter(pk__lt=before)
    return rows
