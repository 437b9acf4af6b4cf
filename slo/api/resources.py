"""Responses of the SLO API: their OpenAPI shapes, and how SLOs and alerts are rendered."""

from typing import Any

import orjson
from django.db.models import TextField
from django.db.models.functions import Cast
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from controlplane.core.canonical import timestamp
from controlplane.core.http.json_format import format_moment
from controlplane.core.http.resources import OptionalTextField, Resource, TimestampField
from slo.api.fields import ActionsField, MetadataField, RulesField, SourceField
from slo.arithmetic.minutes import end_of
from slo.models import Alert, Exclusion, Slo
from slo.models.alerts import SEVERITIES
from slo.objectives import documents, names
from slo.objectives.exclusions import ExclusionOutcome
from slo.objectives.rules import SEVERITIES as LABELS

STATES = ("ok", "firing", "unknown")
ALERT_STATES = ("open", "acknowledged", "resolved")
ONE_SLO = (OpenApiParameter("name", str, OpenApiParameter.PATH, pattern=f"^{names.NAME}$"),)
ONE_ALERT = (OpenApiParameter("alert_id", int, OpenApiParameter.PATH),)
ONE_EXCLUSION = (*ONE_SLO, OpenApiParameter("exclusion_id", int, OpenApiParameter.PATH))


class SloShape(serializers.Serializer[Slo]):
    """An SLO with its stored status."""

    name = serializers.CharField()
    service = serializers.CharField()
    kind = serializers.ChoiceField(documents.KINDS)
    target = serializers.FloatField(help_text="Share of events that must be good.")
    window_days = serializers.IntegerField()
    threshold_ms = serializers.FloatField(allow_null=True)
    source = SourceField()  # type: ignore[assignment]
    rules = RulesField()
    min_events = serializers.IntegerField(help_text="A window with fewer events is unknown.")
    slice_target = serializers.FloatField(
        allow_null=True,
        help_text="Share of a minute's events that makes it good; null if events are counted.",
    )
    actions = ActionsField()
    description = serializers.CharField()
    owner = serializers.CharField()
    runbook_url = serializers.CharField()
    metadata = MetadataField()
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()
    state = serializers.ChoiceField(STATES)
    since = serializers.DateTimeField(allow_null=True, help_text="When the state last changed.")
    judged_at = serializers.DateTimeField(allow_null=True)
    remaining_ratio = serializers.FloatField(
        allow_null=True, help_text="Share of the budget that is left; negative if overspent."
    )
    exhausts_at = serializers.DateTimeField(allow_null=True)
    counted_to = serializers.DateTimeField(
        allow_null=True, help_text="End of the last minute with counts."
    )
    source_error = serializers.CharField(
        allow_null=True, help_text="Error of the last attempt to read the source."
    )
    source_error_since = serializers.DateTimeField(allow_null=True)


class SavedSloShape(SloShape):
    dry_run = serializers.BooleanField(required=False)


class BudgetShape(serializers.Serializer[Any]):
    remaining_ratio = serializers.FloatField(allow_null=True)
    exhausts_at = serializers.DateTimeField(
        allow_null=True, help_text="Forecast from the burn rate of the last 6 hours."
    )


class _RuleShape(serializers.Serializer[Any]):
    long = serializers.CharField()
    short = serializers.CharField()
    burn_rate = serializers.FloatField()
    severity = serializers.ChoiceField(LABELS)


class BurnRateRuleShape(_RuleShape):
    state = serializers.ChoiceField(STATES)


class SloStatusShape(serializers.Serializer[Any]):
    state = serializers.ChoiceField(STATES)
    burn_rates = serializers.DictField(
        child=serializers.FloatField(allow_null=True),
        help_text="Burn rate by window (`5m`); null if unknown.",
    )
    budget = BudgetShape()
    rules = BurnRateRuleShape(many=True)
    coverage = serializers.DictField(
        child=serializers.FloatField(), help_text="Share of each window that samples cover."
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
        """Add the field `from`, a Python keyword that can't be a class attribute."""
        return {"from": serializers.DateTimeField(), **super().get_fields()}


class BacktestAlertShape(_RuleShape):
    opened_at = serializers.DateTimeField()
    resolved_at = serializers.DateTimeField(
        allow_null=True, help_text="Null if the alert would still be open at the end."
    )
    lasted_seconds = serializers.IntegerField()
    worst = serializers.DictField(
        child=serializers.FloatField(), help_text="Highest burn rates while it was open, by window."
    )


class BacktestTickShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    state = serializers.ChoiceField(STATES)
    burn_rates = serializers.DictField(child=serializers.FloatField(allow_null=True))
    rules = BurnRateRuleShape(many=True)


class BacktestShape(serializers.Serializer[Any]):
    start = serializers.DateTimeField()
    end = serializers.DateTimeField()
    step_seconds = serializers.IntegerField()
    ticks = serializers.IntegerField()
    states = serializers.DictField(
        child=serializers.IntegerField(), help_text="Number of ticks in each state."
    )
    alerts = BacktestAlertShape(many=True)
    results = BacktestTickShape(many=True, required=False, help_text="Each tick, if requested.")
    dry_run = serializers.BooleanField(required=False)


class ExclusionShape(Resource[Exclusion]):
    id = serializers.IntegerField()
    starts_at = TimestampField()
    ends_at = TimestampField()
    reason = serializers.CharField()
    created_by = serializers.CharField()
    created_at = TimestampField()
    removed_by = OptionalTextField()
    removed_at = TimestampField(allow_null=True)


class BudgetChangeShape(serializers.Serializer[Any]):
    before = BudgetShape()
    after = BudgetShape()


class SavedExclusionShape(ExclusionShape):
    budget = BudgetChangeShape()
    dry_run = serializers.BooleanField(required=False)


class AlertShape(Resource[Alert]):
    id = serializers.IntegerField()
    kind = serializers.ChoiceField(Alert.Kind.values)
    state = serializers.ChoiceField(ALERT_STATES)
    rule = serializers.CharField(
        help_text="`1h/5m>14 page` for an SLO, or the name of a threshold rule."
    )
    subject = serializers.CharField()
    slo = serializers.CharField(source="slo.name", allow_null=True)
    threshold = serializers.CharField(source="threshold.name", allow_null=True)
    service = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    label = serializers.CharField(  # type: ignore[assignment]
        help_text="`page` or `ticket` for an SLO's rule."
    )
    said = serializers.CharField(source="summary")
    path = serializers.CharField()
    group = serializers.SerializerMethodField(
        help_text="Id of the first alert with the same cause: its own id, or an earlier one."
    )
    opened_at = TimestampField()
    firing_at = TimestampField(
        help_text="When the rule last fired, plus the time since then in which it was unknown."
    )
    evidence = serializers.DictField(help_text="Figures when the alert opened.")
    latest = serializers.DictField(help_text="Figures when the rule last fired.")
    latest_at = TimestampField(
        source="last_fired_at", help_text="When the rule last fired, without unknown time since."
    )
    acknowledged_at = TimestampField(allow_null=True)
    acknowledged_by = OptionalTextField()
    acknowledged_because = OptionalTextField()
    resolved_at = TimestampField(allow_null=True)
    resolved_because = OptionalTextField()

    def get_group(self, alert: Alert) -> int:
        return alert.group or alert.pk


class AlertAcknowledgementShape(AlertShape):
    dry_run = serializers.BooleanField(required=False)


class AlertsAcknowledgementShape(serializers.Serializer[Any]):
    results = AlertShape(many=True)
    dry_run = serializers.BooleanField(required=False)


class PostmortemShape(serializers.Serializer[Any]):
    alert = serializers.IntegerField()
    markdown = serializers.CharField()


COLUMNS: tuple[Any, ...] = (
    "name", "service", "kind", "target", "window_days", "threshold_ms",
    Cast("source", TextField()), Cast("rules", TextField()), "min_events",
    "slice_target", Cast("actions", TextField()), "description", "owner", "runbook_url",
    Cast("metadata", TextField()), "version", "created_at", "changed_at", "status__state",
    "status__since", "status__minute", "status__remaining_ratio", "status__exhausts_at",
    "sli__last", "sli__source_error", "sli__source_error_since",
)  # fmt: skip
"""Columns to select for :func:`serialize_row`, in the order of the fields of :class:`SloShape`."""
_FIELDS = tuple(SloShape().fields)


def slo_resource(slo: Slo) -> dict[str, Any]:
    return serialize_row(Slo.objects.values_list(*COLUMNS).get(pk=slo.pk))


def serialize_row(row: tuple[Any, ...]) -> dict[str, Any]:
    """Return an SLO with its stored status, from a query's row with the columns `COLUMNS`."""
    values = dict(zip(_FIELDS, row, strict=True))
    values["target"] = float(values["target"])
    values["threshold_ms"] = documents.threshold_as_number(values["threshold_ms"])
    values["state"] = values["state"] or "unknown"
    values["source_error"] = values["source_error"] or None
    values["metadata"] = values["metadata"] or "{}"
    if values["slice_target"] is not None:
        values["slice_target"] = float(values["slice_target"])
    for name in ("source", "rules", "actions", "metadata"):
        values[name] = orjson.Fragment(values[name])
    for name in ("created_at", "changed_at", "since", "exhausts_at", "source_error_since"):
        values[name] = format_moment(values[name])
    for name in ("judged_at", "counted_to"):
        minute = values[name]
        values[name] = None if minute is None else timestamp(end_of(minute))
    return values


def outcome_resource(done: ExclusionOutcome) -> dict[str, Any]:
    """Return the response to adding or removing an exclusion, with the budget before and after."""
    return {
        **ExclusionShape.render(done.exclusion),
        "budget": {"before": done.before, "after": done.after},
    }
