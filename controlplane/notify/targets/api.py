"""HTTP API of targets and routes; only admins can change them."""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.http.fields import (
    Body,
    EmptyBody,
    Filters,
    Flag,
    Instant,
    StrictIntegerField,
    Text,
)
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.resources import Resource
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.roles import Power
from controlplane.notify.models.targets import Route, Target
from controlplane.notify.transports import destinations

from . import services
from .fields import Reference, TargetRequest
from .resources import target_resource, target_resources
from .services import NewSecret

MASKED = "The visible part; the rest may be secret."
ONCE = "Shown once, when it is new; null in a repeated response and in a dry run."
HIDDEN_FROM_PROGRAMS = "A person's address is shown to signed-in people only."


class EscalationStepShape(serializers.Serializer[Any]):
    after_minutes = serializers.IntegerField()
    target = serializers.CharField()


class ReachShape(serializers.Serializer[Any]):
    who = serializers.CharField(allow_null=True, help_text="The current person or channel.")
    to = serializers.ListField(child=serializers.CharField())
    why_not = serializers.CharField(allow_null=True, help_text="Why it reaches no one.")


class OnCallShiftShape(serializers.Serializer[Any]):
    person = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="Time of the next handover.")


class TransportKey(serializers.ChoiceField):
    def __init__(self, **options: Any) -> None:
        keys = [one.key for one in destinations.channel_transports()]
        super().__init__(choices=keys, **options)


class TargetRows(serializers.ListSerializer[Any]):
    """Serializer of a page of targets and the people or channels they reach, with few queries."""

    def to_representation(self, data: Any) -> list[dict[str, Any]]:
        addresses = actor_of(self.context["request"]).is_person
        return target_resources(data, db_now(), addresses=addresses)


class TargetShape(serializers.Serializer[Target]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(Target.Kind.values)
    description = serializers.CharField()
    user = serializers.CharField(required=False, allow_null=True)
    email = serializers.CharField(required=False, help_text=HIDDEN_FROM_PROGRAMS)
    slack_user_id = serializers.CharField(required=False, help_text=HIDDEN_FROM_PROGRAMS)
    address = serializers.CharField(required=False, help_text=HIDDEN_FROM_PROGRAMS)
    transport = TransportKey(required=False, allow_null=True, help_text="Transport of a channel.")
    members = serializers.ListField(child=serializers.CharField(), required=False)
    rotation_days = serializers.IntegerField(required=False, allow_null=True)
    rotation_starts_at = serializers.DateTimeField(required=False, allow_null=True)
    time_zone = serializers.CharField(required=False)
    steps = EscalationStepShape(many=True, required=False)
    reaches = ReachShape()
    on_duty = OnCallShiftShape(required=False, allow_null=True)

    class Meta:
        list_serializer_class = TargetRows

    def get_fields(self) -> dict[str, Any]:
        shown_settings = {
            one.name: serializers.CharField(
                required=False, allow_null=True, help_text=MASKED if one.is_secret else ""
            )
            for one in destinations.channel_fields()
            if not one.is_flag
        }
        return {**super().get_fields(), **shown_settings}


class SavedTargetShape(TargetShape):
    def get_fields(self) -> dict[str, Any]:
        secrets = {
            name: serializers.CharField(allow_null=True, help_text=ONCE) for name in _secret_names()
        }
        return {**super().get_fields(), **secrets}


class TestMessageShape(serializers.Serializer[Any]):
    target = serializers.CharField()
    to = serializers.ListField(child=serializers.CharField())


class RemovalShape(serializers.Serializer[Any]):
    removed = serializers.BooleanField()


class RouteShape(Resource[Route]):
    id = serializers.IntegerField()
    event = serializers.CharField()
    scope = serializers.CharField()
    severity = serializers.CharField()
    target = serializers.CharField(source="target.name")
    target_id = serializers.IntegerField()


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class TargetReference(serializers.Field[Reference, Any, Any, Any]):
    """A request field that names a target, by id (number) or name (text)."""

    default_error_messages = {"invalid": "An id (number) or a name (string)."}

    def to_internal_value(self, data: Any) -> Reference:
        if isinstance(data, bool) or not isinstance(data, int | str):
            self.fail("invalid")
        return data


class EscalationStepBody(Body):
    after_minutes = StrictIntegerField(min_value=0)
    target = TargetReference()


class TargetBody(EmptyBody):
    response_shape = SavedTargetShape

    name = Text()
    kind = Text(help_text="One of person, channel, on_call, escalation.")
    description = Text(required=False)
    user = Text(required=False, help_text="Account of a person, whose e-mail and Slack are used.")
    email = Text(required=False)
    slack_user_id = Text(required=False)
    address = Text(required=False, help_text="Address of a channel.")
    members = serializers.ListField(child=TargetReference(), required=False)
    rotation_days = StrictIntegerField(required=False)
    rotation_starts_at = Instant(required=False)
    time_zone = Text(required=False)
    steps = EscalationStepBody(many=True, required=False)

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        fields["address"].help_text = f"{destinations.address_forms()}."
        for one in destinations.channel_fields():
            field_class = Flag if one.is_flag else Text
            fields[one.name] = field_class(required=False, help_text=one.help_text)
        return fields


class RouteBody(EmptyBody):
    event = Text(required=False, help_text="An event or a pattern: switch.engaged, switch.*, *.")
    scope = Text(required=False)
    severity = Text(required=False)
    target = TargetReference()


class TargetFilters(Filters):
    kind = serializers.ChoiceField(Target.Kind.values, required=False)
    transport = TransportKey(required=False)


class TargetWriteView(ApiView):
    """Base of the views that write targets.

    Runs slow checks, such as DNS, before the transaction.
    """

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method in ("POST", "PUT") and actor_of(request).has(Power.ADMINISTER):
            services.look_up(dict(request.data))


class TargetList(TargetWriteView, ListView[Target]):
    """All targets, with the people or channels that they reach now."""

    queryset = Target.objects.select_related("user")
    serializer_class = TargetShape
    filters = TargetFilters
    ordering = "id"
    read_scope = "switches:read"
    write_scope = "switches:write"

    def apply_filters(self, rows: QuerySet[Target], filters: dict[str, Any]) -> QuerySet[Target]:
        key = filters.pop("transport", None)
        if key is not None:
            own = Q(address=key) | Q(address__startswith=f"{key}:")
            rows = rows.filter(own, kind=Target.Kind.CHANNEL)
        return rows.filter(**filters)

    @mutation(TargetBody, {201: SavedTargetShape}, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Create a target. A generated secret is shown in this response only."""
        target, secret = services.create_target(asked=_read_request(body), actor=actor, now=now)
        return _show_saved(target, secret, now, status=201)


class TargetView(TargetWriteView):
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(responses=TargetShape)
    def get(self, request: Request, target_id: int) -> Response:
        """Return a target, with the person or channel that it reaches now."""
        addresses = actor_of(request).is_person
        target = services.get_target(target_id)
        return Response(target_resource(target, db_now(), addresses=addresses))

    @mutation(TargetBody, SavedTargetShape, auth=BY_SESSION)
    def put(self, *, body: dict[str, Any], actor: Actor, now: datetime, target_id: int) -> Done:
        """Replace a target's settings; omitted ones are emptied, except a channel's secrets."""
        target, secret = services.change_target(
            target_id=target_id, asked=_read_request(body), actor=actor, now=now
        )
        return _show_saved(target, secret, now)

    @mutation(EmptyBody, {200: RemovalShape}, auth=BY_SESSION)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime, target_id: int) -> Done:
        """Remove a target; 409 while a step, a rotation or a route uses it."""
        services.remove_target(target_id=target_id, actor=actor, now=now)
        return Done({"removed": True})


class TestTargetView(ApiView):
    write_scope = "switches:write"

    @mutation(EmptyBody, TestMessageShape, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, target_id: int) -> Done:
        """Send a test message to a target, at most once every 10 seconds.

        The outcome is listed in the deliveries, as event `target.test`.
        """
        sent = services.send_test(target_id=target_id, actor=actor, now=now)
        to = destinations.describe_destinations(sent.reach.to)
        return Done({"target": sent.target.name, "to": to})


class RouteList(ListView[Route]):
    """All routes, in the order of their creation."""

    queryset = Route.objects.select_related("target")
    serializer_class = RouteShape
    ordering = "id"
    read_scope = "switches:read"
    write_scope = "switches:write"

    @mutation(RouteBody, {201: RouteShape}, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Route messages of an event to a target. An empty scope or severity matches any."""
        route = services.add_route(**body, actor=actor, now=now)
        return Done(RouteShape.render(route), status=201)


class RouteView(ApiView):
    write_scope = "switches:write"

    @mutation(EmptyBody, {200: RemovalShape}, auth=BY_SESSION)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime, route_id: int) -> Done:
        """Remove a route."""
        services.remove_route(route_id=route_id, actor=actor, now=now)
        return Done({"removed": True})


def _read_request(body: dict[str, Any]) -> TargetRequest:
    steps = [(step["after_minutes"], step["target"]) for step in body.pop("steps", [])]
    settings = {
        one.name: body.pop(one.name) for one in destinations.channel_fields() if one.name in body
    }
    return TargetRequest(**body, steps=steps, settings=settings)


def _show_saved(
    target: Target, secret: NewSecret | None, now: datetime, *, status: int = 200
) -> Done:
    shown = target_resource(target, now, addresses=True)
    # A repeated request must not get the secret again, and that of a dry run is never used.
    without = {**shown, **dict.fromkeys(_secret_names())}
    full = {**without, secret.name: secret.text} if secret else without
    return Done(full, status=status, stored_data=without, dry_run_data=without)


def _secret_names() -> list[str]:
    all_settings = (one.settings for one in destinations.channel_transports())
    return [one.shown_once for one in all_settings if one and one.shown_once]
