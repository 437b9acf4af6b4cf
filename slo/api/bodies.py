"""Serializers of request bodies and filters; the called functions validate the values."""

from typing import Any

from rest_framework import serializers

from controlplane.core.http.fields import (
    EmptyBody,
    Filters,
    Flag,
    Instant,
    Moment,
    StrictIntegerField,
    Text,
)
from controlplane.core.team_filter import TEAM_HELP
from slo.models import Alert
from slo.models.alerts import SEVERITIES
from slo.objectives import documents

from .fields import ActionsField, MetadataField, RulesField, SourceField
from .resources import ALERT_STATES, STATES, SavedSloShape

MAX_ID = 2**63 - 1


class SloBody(EmptyBody):
    """All fields of an SLO; omitted fields get their defaults."""

    response_shape = SavedSloShape

    service = Text(required=False, help_text="Slug of the service that the SLO is about.")
    kind = Text(required=False, help_text=f"One of {', '.join(documents.KINDS)}.")
    target = serializers.JSONField(help_text="Share of events that must be good: 0.999.")
    window_days = serializers.JSONField(
        required=False, help_text="Length of the period in days; by default 30."
    )
    threshold_ms = serializers.JSONField(
        required=False, help_text="For kind latency: maximum duration of a good event."
    )
    rules = RulesField(required=False)
    min_events = serializers.JSONField(required=False)
    slice_target = serializers.JSONField(
        required=False,
        help_text="Count minutes instead of events: a minute is good at this share, such as 0.99.",
    )
    actions = ActionsField(required=False)
    source = SourceField(required=False)  # type: ignore[assignment]
    description = Text(required=False)
    owner = Text(required=False)
    runbook_url = Text(required=False)
    metadata = MetadataField(required=False)
    reason = Text(required=False, max_length=2000, help_text="Reason for the audit trail.")


class NewSloBody(SloBody):
    name = Text()


class SloRemovalBody(EmptyBody):
    reason = Text(required=False, max_length=2000)


class BacktestBody(EmptyBody):
    """The time span of a backtest, and values to use in place of the SLO's saved fields."""

    start = Instant(help_text="Time of the first tick.")
    end = Instant(required=False, help_text="Time of the last tick; by default now.")
    step = serializers.JSONField(
        required=False,
        help_text="Seconds, or a duration such as `5m`; by default a minute, if the limit allows.",
    )
    rules = RulesField(required=False)
    target = serializers.JSONField(required=False)
    window_days = serializers.JSONField(required=False)
    min_events = serializers.JSONField(required=False)
    slice_target = serializers.JSONField(required=False)
    ticks = Flag(required=False, help_text="Whether to list each tick as well; at most 2,000.")


class ExclusionBody(EmptyBody):
    """A time span to exclude, which is extended to whole minutes, and the reason."""

    starts_at = Instant()
    ends_at = Instant()
    reason = Text()


class ExclusionRemovalBody(EmptyBody):
    reason = Text(required=False)


class AcknowledgeAlertBody(EmptyBody):
    comment = Text(required=False, max_length=2000)


class AcknowledgeAlertsBody(AcknowledgeAlertBody):
    """The alerts to acknowledge: a list of ids, or a group."""

    alerts = serializers.ListField(
        child=StrictIntegerField(min_value=1, max_value=MAX_ID),
        required=False,
        allow_empty=False,
        max_length=500,
    )
    group = StrictIntegerField(
        required=False,
        min_value=1,
        max_value=MAX_ID,
        help_text="Field `group` of one of the alerts; in place of `alerts`.",
    )

    def validate(self, attributes: dict[str, Any]) -> dict[str, Any]:
        if ("alerts" in attributes) == ("group" in attributes):
            raise serializers.ValidationError("Name either `alerts` or a `group`.")
        return attributes


class SloFilters(Filters):
    service = serializers.CharField(required=False, max_length=60)
    kind = serializers.ChoiceField(documents.KINDS, required=False)
    state = serializers.ChoiceField(STATES, required=False)
    q = serializers.CharField(
        required=False, max_length=200, help_text="Text in name, service, owner or description."
    )
    team = serializers.CharField(required=False, max_length=60, help_text=TEAM_HELP)


class StatusFilters(Filters):
    at = Moment(required=False, help_text="Time of the status; by default now.")


class SeriesFilters(Filters):
    step = serializers.CharField(
        required=False,
        max_length=20,
        help_text="Seconds, or a duration such as `5m`; at most 2,000 steps.",
    )

    def get_fields(self) -> dict[str, Any]:
        """Add the field `from`, a Python keyword that can't be a class attribute."""
        return {
            "from": Moment(required=False, help_text="Start of the range; by default a day ago."),
            "to": Moment(required=False, help_text="End of the range; by default now."),
            **super().get_fields(),
        }


class ExclusionFilters(Filters):
    removed = serializers.BooleanField(
        default=False, help_text="Whether to include removed exclusions."
    )


class AlertFilters(Filters):
    state = serializers.ChoiceField(ALERT_STATES, required=False)
    kind = serializers.ChoiceField(Alert.Kind.values, required=False)
    severity = serializers.ChoiceField(SEVERITIES, required=False)
    slo = serializers.CharField(required=False, max_length=120)
    service = serializers.CharField(required=False, max_length=60)
    q = serializers.CharField(required=False, max_length=200, help_text="Text in rule or subject.")
    team = serializers.CharField(required=False, max_length=60, help_text=TEAM_HELP)
