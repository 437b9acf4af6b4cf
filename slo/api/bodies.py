"""Bodies and filters of requests. Their meaning is validated by the services, once."""

from typing import Any

from rest_framework import serializers

from controlplane.core.http.fields import Filters, Flag, Instant, Moment, MutationBody, Text
from slo.models import Alert
from slo.models.alerts import SEVERITIES
from slo.objectives import documents

from .shapes import ALERT_STATES, STATES, ActionsField, ChangedSloShape, RulesField, SourceField


class SloBody(MutationBody):
    """A whole SLO: missing fields get their defaults."""

    response_shape = ChangedSloShape

    service = Text(required=False, help_text="The slug of the service it is about.")
    kind = Text(required=False, help_text=f"One of {', '.join(documents.KINDS)}.")
    target = serializers.JSONField(help_text="The share that shall be good: 0.999.")
    window_days = serializers.JSONField(required=False, help_text="The period; 30.")
    threshold_ms = serializers.JSONField(
        required=False, help_text="Of kind latency: an event is good if it took at most so long."
    )
    rules = RulesField(required=False)
    min_events = serializers.JSONField(required=False)
    actions = ActionsField(required=False)
    description = Text(required=False)
    owner = Text(required=False)
    runbook_url = Text(required=False)
    reason = Text(required=False, max_length=2000, help_text="Why; for the audit trail.")

    def get_fields(self) -> dict[str, Any]:
        """Add `source`, which is a name of the serializer's own."""
        return {**super().get_fields(), "source": SourceField(required=False)}


class NewSloBody(SloBody):
    name = Text()


class SloRemovalBody(MutationBody):
    reason = Text(required=False, max_length=2000)


class BacktestBody(MutationBody):
    """The span, and fields that replace the SLO's own."""

    start = Instant(help_text="The first tick.")
    end = Instant(required=False, help_text="The last tick; now.")
    step = serializers.JSONField(required=False, help_text="Seconds, or `5m`; a minute if it fits.")
    rules = RulesField(required=False)
    target = serializers.JSONField(required=False)
    window_days = serializers.JSONField(required=False)
    min_events = serializers.JSONField(required=False)
    ticks = Flag(required=False, help_text="Tell each tick as well; at most 2,000.")


class ExclusionBody(MutationBody):
    """A span; it is extended to whole minutes."""

    starts_at = Instant()
    ends_at = Instant()
    reason = Text()


class ExclusionRemovalBody(MutationBody):
    reason = Text(required=False)


class AcknowledgeAlertBody(MutationBody):
    comment = Text(required=False, max_length=2000)


class SloFilters(Filters):
    service = serializers.CharField(required=False, max_length=60)
    kind = serializers.ChoiceField(documents.KINDS, required=False)
    state = serializers.ChoiceField(STATES, required=False)
    q = serializers.CharField(
        required=False, max_length=200, help_text="In name, service, owner or description."
    )


class StatusFilters(Filters):
    at = Moment(required=False, help_text="As it stood then; as of now.")


class SeriesFilters(Filters):
    step = serializers.CharField(
        required=False, max_length=20, help_text="Seconds, or `5m`; at most 2,000 steps."
    )

    def get_fields(self) -> dict[str, Any]:
        """Add `from`, which can't be an attribute."""
        return {
            "from": Moment(required=False, help_text="A day ago."),
            "to": Moment(required=False, help_text="Now."),
            **super().get_fields(),
        }


class ExclusionFilters(Filters):
    removed = serializers.BooleanField(default=False, help_text="Also those that were taken back.")


class AlertFilters(Filters):
    state = serializers.ChoiceField(ALERT_STATES, required=False)
    kind = serializers.ChoiceField(Alert.Kind.values, required=False)
    severity = serializers.ChoiceField(SEVERITIES, required=False)
    slo = serializers.CharField(required=False, max_length=120)
    service = serializers.CharField(required=False, max_length=60)
    q = serializers.CharField(required=False, max_length=200, help_text="In rule or subject.")
