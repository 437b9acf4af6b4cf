"""The API of threshold rules."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.http.fields import EmptyBody, Flag, Text
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.threshold_metrics import COMPARISONS
from slo.models import ThresholdRule
from slo.models.alerts import SEVERITIES
from slo.objectives import names
from slo.objectives.permissions import require_admin
from slo.thresholds import services, statuses

from .slos import READ, WRITE

ONE_RULE = (OpenApiParameter("name", str, OpenApiParameter.PATH, pattern=f"^{names.NAME}$"),)


class ThresholdListShape(serializers.ListSerializer[ThresholdRule]):
    """A list of threshold rules; the open alerts of all of them are counted in one query."""

    def to_representation(self, data: Any) -> Any:
        return statuses.rule_resources(list(data))


class ThresholdShape(serializers.Serializer[Any]):
    """A threshold rule, and the number of its open alerts."""

    name = serializers.CharField()
    title = serializers.CharField()
    metric = serializers.CharField()
    statistic = serializers.CharField()
    window = serializers.CharField(help_text="Empty for a metric of the current state.")
    comparison = serializers.ChoiceField(COMPARISONS)
    value = serializers.FloatField(help_text="In the unit of the metric; shares are 0 to 1.")
    min_events = serializers.IntegerField()
    severity = serializers.ChoiceField(SEVERITIES)
    enabled = serializers.BooleanField()
    runbook_url = serializers.CharField()
    built_in = serializers.BooleanField(help_text="Whether the rule came with the installation.")
    version = serializers.IntegerField()
    changed_at = serializers.DateTimeField()
    sentence = serializers.CharField(help_text="The rule in words.")
    open_alerts = serializers.IntegerField()


class ListedThresholdShape(ThresholdShape):
    class Meta:
        list_serializer_class = ThresholdListShape


class ThresholdBody(EmptyBody):
    """All fields of a threshold rule; omitted fields get their defaults."""

    response_shape = ThresholdShape

    title = Text(required=False)
    metric = Text(help_text="`timeout_rate`, `breaker_open`, `latency_ms`, `latency_ms:e2e`, …")
    statistic = Text(required=False, help_text="Optional if the metric has only one.")
    window = Text(
        required=False,
        help_text="Whole minutes, by default `5m`; empty for a metric of the present state.",
    )
    comparison = Text(required=False, help_text=f"One of {' '.join(COMPARISONS)}; by default `>`.")
    value = serializers.JSONField(help_text="A number; shares are 0 to 1, latencies milliseconds.")
    min_events = serializers.JSONField(
        required=False, help_text="Fewer events open no alert; by default 1."
    )
    severity = Text(help_text=f"One of {', '.join(SEVERITIES)}.")
    enabled = Flag(required=False)
    runbook_url = Text(required=False)
    reason = Text(required=False, max_length=2000, help_text="Reason for the audit trail.")


class NewThresholdBody(ThresholdBody):
    name = Text()


class ThresholdRemovalBody(EmptyBody):
    reason = Text(required=False, max_length=2000)


class ThresholdList(ListView[ThresholdRule]):
    """All threshold rules, in order of name."""

    queryset = ThresholdRule.objects.all()
    serializer_class = ListedThresholdShape
    ordering = "name"
    read_scope = READ
    write_scope = WRITE

    @extend_schema(request=NewThresholdBody, responses={201: ThresholdShape})
    @mutation(NewThresholdBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Create a threshold rule."""
        name = body.pop("name")
        require_admin(actor)
        services.require_new(name)
        return _write(name, body, actor, now)


class ThresholdDetail(ApiView):
    path_parameters = ONE_RULE
    read_scope = READ
    write_scope = WRITE

    @extend_schema(responses=ThresholdShape)
    def get(self, request: Request, name: str) -> Response:
        """One threshold rule."""
        return Response(_rule_resource(services.find_rule(name)))

    @extend_schema(request=ThresholdBody, responses={200: ThresholdShape, 201: ThresholdShape})
    @mutation(ThresholdBody)
    def put(self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str) -> Done:
        """Create a threshold rule, or replace it. The rule is evaluated within ten seconds."""
        return _write(name, body, actor, now)

    @extend_schema(request=ThresholdRemovalBody, responses={200: ThresholdShape})
    @mutation(ThresholdRemovalBody)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime, name: str) -> Done:
        """Remove a threshold rule; its open alerts resolve at the next evaluation."""
        reason = body.get("reason", "")
        removed = services.remove_rule(name=name, reason=reason, actor=actor, now=now)
        return Done(_rule_resource(removed))


def _write(name: str, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
    reason = body.pop("reason", "")
    rule, is_new = services.put_rule(name=name, fields=body, reason=reason, actor=actor, now=now)
    return Done(_rule_resource(rule), status=201 if is_new else 200)


def _rule_resource(rule: ThresholdRule) -> dict[str, Any]:
    (found,) = statuses.rule_resources([rule])
    return found
