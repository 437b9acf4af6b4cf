"""HTTP API of escalations: list and acknowledge them."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from controlplane.core.actors import Actor
from controlplane.core.canonical import timestamp
from controlplane.core.escalations import services, summaries
from controlplane.core.http.fields import Filters, MutationBody, Text
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.outbox.escalation import Escalation


class ToldShape(serializers.Serializer[Any]):
    at = serializers.DateTimeField()
    who = serializers.ListField(child=serializers.CharField())


class EscalationShape(serializers.Serializer[Escalation]):
    id = serializers.IntegerField()
    subject = serializers.CharField()
    event = serializers.CharField()
    title = serializers.CharField()
    severity = serializers.ChoiceField(SEVERITIES)
    path = serializers.CharField()
    opened_at = serializers.DateTimeField()
    notices = serializers.IntegerField(help_text="How often somebody was told.")
    notified_at = serializers.DateTimeField(allow_null=True)
    next_at = serializers.DateTimeField(allow_null=True)
    told = ToldShape(many=True, help_text="Who was told, the latest few, oldest first.")
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField(allow_null=True)
    closed_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, escalation: Escalation) -> dict[str, Any]:
        return escalation_resource(escalation)


def escalation_resource(escalation: Escalation) -> dict[str, Any]:
    return {
        "id": escalation.pk,
        "subject": escalation.subject,
        "event": escalation.event,
        "title": summaries.format_title(escalation),
        "severity": escalation.severity,
        "path": escalation.facts.get("path") or summaries.ANY_PAGE,
        "opened_at": timestamp(escalation.opened_at),
        "notices": escalation.notices,
        "notified_at": _at(escalation.notified_at),
        "next_at": _at(escalation.next_at),
        "told": escalation.facts.get(summaries.NOTIFIED, []),
        "acknowledged_at": _at(escalation.acknowledged_at),
        "acknowledged_by": escalation.acknowledged_by or None,
        "closed_at": _at(escalation.closed_at),
    }


def _at(moment: datetime | None) -> str | None:
    return timestamp(moment) if moment else None


class EscalationFilters(Filters):
    state = serializers.ChoiceField(
        ["open", "closed", "all"], required=False, help_text="`open`, if left out."
    )
    subject = Text(required=False, max_length=120)


class KnownBody(MutationBody):
    comment = Text(required=False, max_length=2000)


class EscalationList(ListView[Escalation]):
    """Escalations that have to be acknowledged or settled, newest first."""

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

    @extend_schema(request=KnownBody, responses=EscalationShape)
    @mutation(KnownBody)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, escalation_id: int
    ) -> Done:
        """Stop notifications for 24 hours, then send one a day. A switch has a path of its own."""
        acknowledged = services.acknowledge_one(
            escalation_id=escalation_id,
            actor=actor,
            now=now,
            comment=body.get("comment", "").strip(),
        )
        return Done(escalation_resource(acknowledged))
