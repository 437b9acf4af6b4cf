"""Targets and routes over HTTP: everybody with `switches:read` sees them, admins change them."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.http.fields import Body, Filters, Flag, Instant, MutationBody, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.roles import Power
from controlplane.core.targets import reach, services
from controlplane.core.targets.fields import Asked, Reference
from controlplane.core.targets.models import Route, Target
from controlplane.core.targets.resources import route_resource, target_resource, target_resources

HIDDEN_FROM_PROGRAMS = "A person's address is shown to signed-in people only."


class StepShape(serializers.Serializer[Any]):
    after_minutes = serializers.IntegerField()
    target = serializers.CharField()


class ReachShape(serializers.Serializer[Any]):
    who = serializers.CharField(allow_null=True, help_text="The person or channel it is now.")
    to = serializers.ListField(child=serializers.CharField())
    why_not = serializers.CharField(allow_null=True, help_text="Why it reaches nobody.")


class DutyShape(serializers.Serializer[Any]):
    person = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="The next hand-over.")


class TargetRows(serializers.ListSerializer[Any]):
    """Knows whom all the targets of a page reach, asked for once."""

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
    webhook_url = serializers.CharField(
        required=False, allow_null=True, help_text="Only whose it is; the rest may be a secret."
    )
    members = serializers.ListField(child=serializers.CharField(), required=False)
    rotation_days = serializers.IntegerField(required=False, allow_null=True)
    rotation_starts_at = serializers.DateTimeField(required=False, allow_null=True)
    time_zone = serializers.CharField(required=False)
    steps = StepShape(many=True, required=False)
    reaches = ReachShape()
    on_duty = DutyShape(required=False, allow_null=True)

    class Meta:
        list_serializer_class = TargetRows


class WrittenTargetShape(TargetShape):
    webhook_secret = serializers.CharField(
        allow_null=True,
        help_text="Shown once: only if it is new, and null in a repeated answer and in a dry run.",
    )


class TestShape(serializers.Serializer[Any]):
    target = serializers.CharField()
    to = serializers.ListField(child=serializers.CharField())


class RouteShape(serializers.Serializer[Route]):
    id = serializers.IntegerField()
    event = serializers.CharField()
    scope = serializers.CharField()
    severity = serializers.CharField()
    target = serializers.CharField()
    target_id = serializers.IntegerField()

    def to_representation(self, route: Route) -> dict[str, Any]:
        return route_resource(route)


class RemovedShape(serializers.Serializer[Any]):
    removed = serializers.BooleanField()


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class TargetReference(serializers.Field[Reference, Any, Any, Any]):
    """A target by id, a number, or by name, a text."""

    default_error_messages = {"invalid": "An id (a number) or a name (a text)."}

    def to_internal_value(self, data: Any) -> Reference:
        if isinstance(data, bool) or not isinstance(data, int | str):
            self.fail("invalid")
        return data


class WholeNumber(serializers.IntegerField):
    """JSON's number without a fraction, not a text that looks like one."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class StepBody(Body):
    after_minutes = WholeNumber(min_value=0)
    target = TargetReference()


class TargetBody(MutationBody):
    shown_as = WrittenTargetShape

    name = Text()
    kind = Text(help_text="person, channel, on_call or escalation.")
    description = Text(required=False)
    user = Text(required=False, help_text="A person's account: its e-mail and Slack are used.")
    email = Text(required=False)
    slack_user_id = Text(required=False)
    address = Text(
        required=False, help_text="slack, slack:#ops, slack:C024BE91L, email:…, or webhook."
    )
    webhook_url = Text(required=False, help_text="Left out in a PUT, it stays as it is.")
    new_secret = Flag(required=False, help_text="Sign with another secret from now on.")
    members = serializers.ListField(child=TargetReference(), required=False)
    rotation_days = WholeNumber(required=False)
    rotation_starts_at = Instant(required=False)
    time_zone = Text(required=False)
    steps = StepBody(many=True, required=False)


class RouteBody(MutationBody):
    event = Text(required=False, help_text="An event or a pattern: switch.engaged, switch.*, *.")
    scope = Text(required=False)
    severity = Text(required=False)
    target = TargetReference()


class TargetFilters(Filters):
    kind = serializers.ChoiceField(Target.Kind.values, required=False)


class WebhookView(ApiView):
    """Looks up the host of a webhook before the transaction: nobody should wait for DNS there."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method in ("POST", "PUT") and actor_of(request).has(Power.ADMINISTER):
            url = dict(request.data).get("webhook_url")
            services.look_up(url.strip() if isinstance(url, str) else "")


class TargetList(WebhookView, ListView[Target]):
    """Everybody and everything that can be told, and whether they are reached."""

    queryset = Target.objects.select_related("user")
    serializer_class = TargetShape
    filters = TargetFilters
    ordering = "id"
    read_scope = "switches:read"
    write_scope = "switches:write"

    def chosen(self, rows: QuerySet[Target], filters: dict[str, Any]) -> QuerySet[Target]:
        return rows.filter(**filters)

    @extend_schema(request=TargetBody, responses={201: WrittenTargetShape}, auth=BY_SESSION)
    @mutation(TargetBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Make a target. A webhook's secret is in this answer and nowhere else."""
        target, secret = services.create(asked=_asked(body), actor=actor, now=now)
        return _written(target, secret, now, status=201)


class TargetView(WebhookView):
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(responses=TargetShape)
    def get(self, request: Request, target_id: int) -> Response:
        """One target, and whom it reaches now."""
        addresses = actor_of(request).is_person
        target = services.one(target_id)
        return Response(target_resource(target, db_now(), addresses=addresses))

    @extend_schema(request=TargetBody, responses=WrittenTargetShape, auth=BY_SESSION)
    @mutation(TargetBody)
    def put(self, *, body: dict[str, Any], actor: Actor, now: datetime, target_id: int) -> Done:
        """Make it what is sent; what is left out is emptied, except a webhook's URL."""
        target, secret = services.change(
            target_id=target_id, asked=_asked(body), actor=actor, now=now
        )
        return _written(target, secret, now)

    @extend_schema(request=MutationBody, responses={200: RemovedShape}, auth=BY_SESSION)
    @mutation(MutationBody)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime, target_id: int) -> Done:
        """Remove it; 409 while a step, a rotation or a route leads to it."""
        services.remove(target_id=target_id, actor=actor, now=now)
        return Done({"removed": True})


class TestTargetView(ApiView):
    write_scope = "switches:write"

    @extend_schema(request=MutationBody, responses=TestShape, auth=BY_SESSION)
    @mutation(MutationBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, target_id: int) -> Done:
        """Send it a message that says it is a test."""
        target, reached = services.test(target_id=target_id, actor=actor, now=now)
        return Done({"target": target.name, "to": reach.masked(reached.to)})


class RouteList(ListView[Route]):
    """Which messages go where, in the order they were made."""

    queryset = Route.objects.select_related("target")
    serializer_class = RouteShape
    ordering = "id"
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(request=RouteBody, responses={201: RouteShape}, auth=BY_SESSION)
    @mutation(RouteBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Lead messages of an event, a scope and a severity (empty: any) to a target."""
        route = services.add_route(
            event=body.get("event", ""),
            scope=body.get("scope", ""),
            severity=body.get("severity", ""),
            target=body["target"],
            actor=actor,
            now=now,
        )
        return Done(route_resource(route), status=201)


class RouteView(ApiView):
    write_scope = "switches:write"

    @extend_schema(request=MutationBody, responses={200: RemovedShape}, auth=BY_SESSION)
    @mutation(MutationBody)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime, route_id: int) -> Done:
        """End a route."""
        services.remove_route(route_id=route_id, actor=actor, now=now)
        return Done({"removed": True})


def _asked(body: dict[str, Any]) -> Asked:
    steps = [(step["after_minutes"], step["target"]) for step in body.pop("steps", [])]
    return Asked(**body, steps=steps)


def _written(target: Target, secret: str | None, now: datetime, *, status: int = 200) -> Done:
    shown = target_resource(target, now, addresses=True)
    # A repeat can't have it again, and the one of a dry run signs nothing.
    without = {**shown, "webhook_secret": None}
    return Done({**shown, "webhook_secret": secret}, status=status, kept=without, would_be=without)
