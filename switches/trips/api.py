"""REST API of trips and of sample ratio checks of experiments."""

from datetime import datetime
from itertools import islice
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from switches.api.switches import read_switch_resource
from switches.models import Trip
from switches.scopes import EXPERIMENT, KEY_PATTERN
from switches.services.registration import identify
from switches.trips import bodies, history, policies, resolution, services, srm

SRM_SOURCE = "srm"
SRM_EXPIRY = "24h"


class TripView(ApiView):
    write_scope = "switches:trip"

    @extend_schema(request=bodies.TripBody, responses=bodies.TripResultShape)
    @mutation(bodies.TripBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Request a trip of a switch; a refusal by the policies is a normal response.

        Only the first request with a fingerprint can engage the switch; later ones are
        repeats.
        """
        resolved = body.pop("status", "firing") == "resolved"
        if resolved:
            identify(*body["switch"].partition(":")[::2])
            alert = {name: body[name] for name in ("switch", "fingerprint")}
            why = resolution.resolve_alert(**alert, actor=actor, now=now)
            return _respond(body["switch"], {"tripped": False, "why": why, "trip": None}, now)
        result = services.request_trip(**{"reason": "", **body}, actor=actor, now=now)
        return _respond(body["switch"], _trip_fields(result), now)


class ArmsView(ApiView):
    path_parameters = (
        OpenApiParameter("key", str, OpenApiParameter.PATH, pattern=f"^{KEY_PATTERN}$"),
    )
    write_scope = "switches:trip"

    @extend_schema(request=bodies.ArmsBody, responses=bodies.ArmsShape)
    @mutation(bodies.ArmsBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, key: str) -> Done:
        """Test the counts of an experiment's arms against their shares (chi-square).

        A mismatch trips the experiment if the policies allow it. Counts are totals since
        the experiment began.
        """
        switch = identify(EXPERIMENT.name, key)
        verdict = srm.evaluate_arms(body["arms"], body.get("alpha", srm.ALPHA))
        numbers = bodies.ArmTestShape.render(verdict)
        fingerprint = f"srm:{key}"
        if verdict.mismatch:
            result = services.request_trip(
                switch=switch,
                source=SRM_SOURCE,
                fingerprint=fingerprint,
                reason=_srm_reason(verdict),
                evidence=numbers,
                expires_in=body.get("expires_in") or SRM_EXPIRY,
                actor=actor,
                now=now,
            )
            return _respond(switch, {**numbers, **_trip_fields(result)}, now)
        why = f"Each arm needs at least {srm.MIN_EXPECTED} expected before this can be judged."
        if verdict.verdict == srm.OK:
            effect = resolution.resolve_alert(
                switch=switch, fingerprint=fingerprint, actor=actor, now=now
            )
            why = f"{_FITS} {effect}" if "stays" in effect else _FITS
        return _respond(switch, {**numbers, "tripped": False, "why": why, "trip": None}, now)


class TripShape(Resource[Trip]):
    id = serializers.IntegerField(source="pk")
    switch = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]  # Field has one
    fingerprint = serializers.CharField()
    reason = serializers.CharField()
    evidence = serializers.DictField()
    policy = serializers.CharField(source="policy.trigger", allow_null=True)
    outcome = serializers.ChoiceField(Trip.Outcome.values)
    why = serializers.CharField()
    at = TimestampField()
    by = serializers.CharField()
    episode = serializers.IntegerField(source="episode_id", allow_null=True)
    repeats = serializers.IntegerField()
    last_at = TimestampField()
    resolved_at = TimestampField(allow_null=True)


class TripList(ListView[Trip]):
    """Trips with their outcomes, newest first."""

    queryset = Trip.objects.select_related("policy")
    serializer_class = TripShape
    filters = bodies.TripFilters
    ordering = "-id"
    read_scope = "switches:read"

    def apply_filters(self, rows: QuerySet[Trip], filters: dict[str, Any]) -> QuerySet[Trip]:
        return rows.filter(**filters)


class PoliciesView(ApiView):
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(responses=bodies.PoliciesShape)
    def get(self, request: Request) -> Response:
        """Return the trip policies; the first row that matches source and scope decides."""
        return Response(_read_policies())

    @extend_schema(request=bodies.PoliciesBody, responses=bodies.PoliciesShape, auth=BY_SESSION)
    @mutation(bodies.PoliciesBody)
    def put(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Replace all trip policies.

        Admins only. A policy can't trip the global switch automatically.
        """
        policies.replace_policies(rows=body["policies"], actor=actor, now=now)
        return Done(_read_policies())


_FITS = "The counts fit the shares."


def _respond(switch: str, text: dict[str, Any], now: datetime) -> Done:
    scope, _, key = switch.partition(":")

    def present() -> dict[str, Any]:
        found: dict[str, Any] = {"switch": read_switch_resource(scope, key)}
        if text["trip"] and not Trip.objects.filter(pk=text["trip"]).exists():
            found["trip"] = None  # A dry run was rolled back.
        return found

    return Done({**text, **present()}, actual=present)


def _trip_fields(result: services.TripResult) -> dict[str, Any]:
    return {"tripped": result.tripped, "why": result.why, "trip": result.trip.pk}


def _srm_reason(verdict: srm.SrmResult) -> str:
    shown = [
        f"{name} {arm.count:,} ({arm.share:.4g} planned)"
        for name, arm in islice(verdict.arms.items(), 6)
    ]
    more = f" and {len(verdict.arms) - 6} more arms" if len(verdict.arms) > 6 else ""
    chi_square = f"chi-square {verdict.chi_square:.4g}"
    test = chi_square if verdict.test == srm.CHI_SQUARE else "binomial"
    return (
        f"Sample ratio mismatch: of {verdict.total:,} {', '.join(shown)}{more}; "
        f"{test}, p {verdict.p_value:.3g} below {verdict.alpha:g}"
    )


def _read_policies() -> dict[str, Any]:
    rows = [policies.policy_fields(row) for row in history.list_policies()]
    return {"next": None, "previous": None, "results": rows}
