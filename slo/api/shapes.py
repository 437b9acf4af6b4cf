"""Responses of the API, for OpenAPI; `slo.resources` makes them."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers

from slo import resources
from slo.models import Alert, Exclusion, Slo
from slo.models.alerts import SEVERITIES
from slo.models.objective import HOLD_RAMPS, PROMETHEUS, PUSH, TRIP
from slo.objectives import documents, names, presets
from slo.objectives.rules import SEVERITIES as LABELS
from slo.objectives.sources_and_actions import ON, ON_UNKNOWN

STATES = ("ok", "firing", "unknown")
ALERT_STATES = ("open", "acknowledged", "resolved")
ONE_SLO = (OpenApiParameter("name", str, OpenApiParameter.PATH, pattern=f"^{names.NAME}$"),)
ONE_ALERT = (OpenApiParameter("alert_id", int, OpenApiParameter.PATH),)
ONE_EXCLUSION = (*ONE_SLO, OpenApiParameter("exclusion_id", int, OpenApiParameter.PATH))

_WINDOW = {"type": "string", "description": "Whole minutes: `5m`, `1h`, `3d`."}
RULE = {
    "type": "object",
    "required": ["long", "burn_rate", "severity"],
    "properties": {
        "long": _WINDOW,
        "short": {**_WINDOW, "description": "A twelfth of the long one, unless it is said."},
        "burn_rate": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "It fires strictly above it, over both windows; below 1 / budget.",
        },
        "severity": {"type": "string", "enum": [*LABELS]},
    },
}
RULES = {
    "type": "array",
    "items": RULE,
    "default": [rule.document() for rule in presets.SEED],
}
SOURCE = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": [PUSH, PROMETHEUS], "default": PUSH},
        "url": {"type": "string", "description": "Of a Prometheus: its base address."},
        "good": {"type": "string", "description": "PromQL of one counter of good events."},
        "total": {"type": "string", "description": "PromQL of one counter of all events."},
    },
}
ACTIONS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["do"],
        "properties": {
            "on": {"type": "string", "enum": [*ON], "default": "page"},
            "do": {"type": "string", "enum": [TRIP, HOLD_RAMPS]},
            "switch": {"type": "string", "description": "To trip: `experiment:x`; never global."},
            "expires_in": {"type": "string", "description": "Of the trip: `90s` to `30d`; 1h."},
            "on_unknown": {
                "type": "string",
                "enum": [*ON_UNKNOWN],
                "default": "nothing",
                "description": "What to do after 5 minutes in which nothing is known.",
            },
        },
    },
}


@extend_schema_field(RULES)
class RulesField(serializers.JSONField):
    """Validated by `slo.objectives.rules`."""


@extend_schema_field(SOURCE)
class SourceField(serializers.JSONField):
    """Validated by `slo.objectives.sources_and_actions`."""


@extend_schema_field(ACTIONS)
class ActionsField(serializers.JSONField):
    """Validated by `slo.objectives.sources_and_actions`."""


class SloShape(serializers.Serializer[Slo]):
    """An SLO with its stored status."""

    name = serializers.CharField()
    service = serializers.CharField()
    kind = serializers.ChoiceField(documents.KINDS)
    target = serializers.FloatField(help_text="The share of events that shall be good.")
    window_days = serializers.IntegerField()
    threshold_ms = serializers.FloatField(allow_null=True)
    rules = RulesField()
    min_events = serializers.IntegerField(help_text="Nothing is known of a window with fewer.")
    actions = ActionsField()
    description = serializers.CharField()
    owner = serializers.CharField()
    runbook_url = serializers.CharField()
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()
    state = serializers.ChoiceField(STATES)
    since = serializers.DateTimeField(allow_null=True, help_text="Since when it is in that state.")
    judged_at = serializers.DateTimeField(allow_null=True)
    remaining_ratio = serializers.FloatField(
        allow_null=True, help_text="What is left of the budget; below zero if overspent."
    )
    exhausts_at = serializers.DateTimeField(allow_null=True)
    counted_to = serializers.DateTimeField(allow_null=True, help_text="The last minute counted.")
    source_error = serializers.CharField(
        allow_null=True, help_text="Why its source could not be read last."
    )
    source_error_since = serializers.DateTimeField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        """Add `source`, which is a name of the serializer's own."""
        return {**super().get_fields(), "source": SourceField()}

    def to_representation(self, row: Slo) -> dict[str, Any]:
        return resources.slo_resource(row)


class ChangedSloShape(SloShape):
    dry_run = serializers.BooleanField(required=False)


class BudgetShape(serializers.Serializer[Any]):
    remaining_ratio = serializers.FloatField(allow_null=True)
    exhausts_at = serializers.DateTimeField(
        allow_null=True, help_text="If it goes on as over the last 6 hours."
    )


class JudgedShape(serializers.Serializer[Any]):
    long = serializers.CharField()
    short = serializers.CharField()
    burn_rate = serializers.FloatField()
    severity = serializers.ChoiceField(LABELS)
    state = serializers.ChoiceField(STATES)


class StatusShape(serializers.Serializer[Any]):
    state = serializers.ChoiceField(STATES)
    burn_rates = serializers.DictField(
        child=serializers.FloatField(allow_null=True),
        help_text="By window (`5m`); null where nothing is known.",
    )
    budget = BudgetShape()
    rules = JudgedShape(many=True)
    coverage = serializers.DictField(
        child=serializers.FloatField(), help_text="The share of a window that samples cover."
    )


class SeriesPointShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    state = serializers.ChoiceField(STATES)
    burn_rates = serializers.DictField(child=serializers.FloatField(allow_null=True))
    remaining_ratio = serializers.FloatField(allow_null=True)


class SeriesShape(serializers.Serializer[Any]):
    to = serializers.DateTimeField()
    step_seconds = serializers.IntegerField()
    points = SeriesPointShape(many=True)

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, which can't be an attribute."""
        return {"from": serializers.DateTimeField(), **super().get_fields()}


class FiredShape(serializers.Serializer[Any]):
    long = serializers.CharField()
    short = serializers.CharField()
    burn_rate = serializers.FloatField()
    severity = serializers.ChoiceField(LABELS)
    opened_at = serializers.DateTimeField()
    resolved_at = serializers.DateTimeField(
        allow_null=True, help_text="Null if it would still be open at the end."
    )
    lasted_seconds = serializers.IntegerField()
    worst = serializers.DictField(
        child=serializers.FloatField(), help_text="The highest burn rates meanwhile, by window."
    )


class TickShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    state = serializers.ChoiceField(STATES)
    burn_rates = serializers.DictField(child=serializers.FloatField(allow_null=True))
    rules = JudgedShape(many=True)


class BacktestShape(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    step_seconds = serializers.IntegerField()
    ticks = serializers.IntegerField()
    states = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many ticks were in each state."
    )
    alerts = FiredShape(many=True)
    results = TickShape(many=True, required=False, help_text="Each tick, if that was asked for.")
    dry_run = serializers.BooleanField(required=False)


class ExclusionShape(serializers.Serializer[Exclusion]):
    id = serializers.IntegerField()
    starts_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    reason = serializers.CharField()
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    removed_by = serializers.CharField(allow_null=True)
    removed_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, row: Exclusion) -> dict[str, Any]:
        return resources.exclusion_resource(row)


class BudgetsShape(serializers.Serializer[Any]):
    before = BudgetShape()
    after = BudgetShape()


class OutcomeShape(ExclusionShape):
    budget = BudgetsShape()
    dry_run = serializers.BooleanField(required=False)


class AlertShape(serializers.Serializer[Alert]):
    id = serializers.IntegerField()
    kind = serializers.ChoiceField(Alert.Kind.values)
    state = serializers.ChoiceField(ALERT_STATES)
    rule = serializers.CharField(help_text="`1h/5m>14 page`, or the name of a threshold rule.")
    subject = serializers.CharField()
    slo = serializers.CharField(allow_null=True)
    threshold = serializers.CharField(allow_null=True)
    service = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    said = serializers.CharField()
    path = serializers.CharField()
    opened_at = serializers.DateTimeField()
    firing_at = serializers.DateTimeField(help_text="The last time it was seen to fire.")
    evidence = serializers.DictField(help_text="What was counted when it opened.")
    latest = serializers.DictField(help_text="What was counted when it fired last.")
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField(allow_null=True)
    acknowledged_because = serializers.CharField(allow_null=True)
    resolved_at = serializers.DateTimeField(allow_null=True)
    resolved_because = serializers.CharField(allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        """Add `label`, which is a name of the serializer's own."""
        label = serializers.CharField(help_text="`page` or `ticket` of an SLO's rule.")
        return {**super().get_fields(), "label": label}

    def to_representation(self, row: Alert) -> dict[str, Any]:
        return resources.alert_resource(row)


class AcknowledgedAlertShape(AlertShape):
    dry_run = serializers.BooleanField(required=False)


class PostmortemShape(serializers.Serializer[Any]):
    alert = serializers.IntegerField()
    markdown = serializers.CharField()
