"""API of the fleet: all data planes and relays."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.clock import db_now
from controlplane.core.fleet import queries
from controlplane.core.fleet.statuses import STATES, FleetMember, PublishedHead
from controlplane.core.http.fields import Filters
from controlplane.core.http.pagination import PAGE_PARAMETERS, CursorPages, paginate_list
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView


class FleetMemberShape(Resource[FleetMember]):
    name = serializers.CharField()
    kind = serializers.ChoiceField(("data plane", "relay"))
    state = serializers.ChoiceField(
        STATES,
        help_text="`silent`: no report for 30 s, so that all other values are the last known ones;"
        " `empty`: no snapshot; `lagging`: its snapshot is over 10 s old, or a version is missing"
        " that was published over 10 s before.",
    )
    upstreams = serializers.ListField(
        child=serializers.CharField(),
        help_text="Names of what a relay follows; empty for a data plane.",
    )
    releases = serializers.ListField(child=serializers.CharField())
    epoch = serializers.UUIDField(allow_null=True)
    version = serializers.IntegerField(allow_null=True, help_text="The lowest of its processes.")
    age_seconds = serializers.FloatField(
        allow_null=True, help_text="Age of the served snapshot at the last report."
    )
    held = serializers.IntegerField(help_text="Polls and streams held open.")
    instances = serializers.IntegerField(help_text="Instances heard in the last minute.")
    processes = serializers.IntegerField()
    heard_at = TimestampField()


class PublishedHeadShape(Resource[PublishedHead]):
    epoch = serializers.UUIDField()
    version = serializers.IntegerField()
    published_at = TimestampField()


class FleetShape(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)
    published = PublishedHeadShape(help_text="The version that the console published last.")
    results = FleetMemberShape(many=True)


class FleetFilters(Filters):
    state = serializers.ChoiceField(STATES, required=False)


class FleetView(ApiView):
    read_scope = "switches:read"
    filters = FleetFilters
    query_parameters = CursorPages.parameters

    @extend_schema(parameters=PAGE_PARAMETERS, responses=FleetShape)
    def get(self, request: Request) -> Response:
        """List data planes and relays: silent and lagging ones first."""
        wanted = self.filters.parse(request.query_params)
        fleet = queries.load_fleet(db_now())
        members = [
            member
            for member in fleet.members
            if "state" not in wanted or member.state == wanted["state"]
        ]
        shown = {"published": fleet.head, **paginate_list(members, request)}
        return Response(FleetShape(shown).data)
