"""HTTP API of escalations: list and acknowledge them."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.core.actors import Actor
from controlplane.core.escalations import services, summaries
from controlplane.core.http.fields import EmptyBody, Filters, Text
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.outbox.escalation import Escalation


class EscalationNoticeShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    who = serializers.ListField(child=serializers.CharField())


class EscalationShape(Resource[Escalation]):
    id = serializers.IntegerField()
    subject = serializers.CharField()
    event = serializers.CharField()
    title = serializers.SerializerMethodField()
    severity = serializers.ChoiceField(SEVERITIES)
    path = serializers.SerializerMethodField()
    opened_at = TimestampField()
    notices = serializers.IntegerField(help_text="Number of notifications.")
    notified_at = TimestampField(allow_null=True)
    next_at = TimestampField(allow_null=True)
    told = serializers.SerializerMethodField()
    acknowledged_at = TimestampField(allow_null=True)
    acknowledged_by = serializers.SerializerMethodField()
    closed_at = TimestampField(allow_null=True)

    def get_title(self, escalation: Escalation) -> str:
        return summaries.format_title(escalation)

    def get_path(self, escalation: Escalation) -> str:
        return escalation.facts.get("path") or summaries.ANY_PAGE

    @extend_schema_field(
        EscalationNoticeShape(many=True, help_text="The last notifications, oldest first.")
    )
    def get_told(self, escalation: Escalation) -> Any:
        return escalation.facts.get(summaries.NOTIFIED, [])

    def get_acknowledged_by(self, escalation: Escalation) -> str | None:
        return escalation.acknowledged_by or None


class EscalationFilters(Filters):
    state = serializers.ChoiceField(
        ["open", "closed", "all"], required=False, help_text="Default: `open`."
    )
    subject = Text(required=False, max_length=120)


class AcknowledgeEscalationBody(EmptyBody):
    comment = Text(required=False, max_length=2000)


class EscalationList(ListView[Escalation]):
    """Escalations, newest first: open ones, or those in the given `state`."""

    queryset = Escalation.objects.all()
    serializer_class = EscalationShape
    filters = EscalationFilters
    ordering = "-id"
    read_scope = "switches:read"

    def apply_filters(
        self, rows: QuerySet[Escalation], filters: dict[str, Any]
    ) -> QuerySet[Escalation]:
        state = filters.get("state", "open")
        if state != "all":
            rows = rows.filter(closed_at__isnull=state == "open")
        return rows.filter(subject=filters["subject"]) if "subject" in filters else rows


class AcknowledgeView(ApiView):
    write_scope = "switches:write"

    @mutation(AcknowledgeEscalationBody, EscalationShape)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, escalation_id: int
    ) -> Done:
        """Acknowledge an escalation: send no notifications for 24 hours, then one a day.

        An engaged switch is acknowledged at its own path, `/switches/{scope}/{key}/acknowledge`.
        """
        acknowledged = services.acknowledge_one(
            escalation_id=escalation_id,
            actor=actor,
            now=now,
            comment=body.get("comment", "").strip(),
        )
        return Done(EscalationShape.render(acknowledged))
