"""Read-only admin tables of messages, targets, routes and escalations."""

from django.contrib import admin

from controlplane.core.admin.site import ReadOnly, register_read_only
from controlplane.core.models import Attempt, Escalation, OutboxMessage, Pace, Thread

from .models import AnsweredRequest, EscalationStep, OnCallMember, Route, Target, TeamContact


@admin.register(OutboxMessage)
class OutboxMessageAdmin(ReadOnly):
    exclude = ("payload",)  # It may hold a secret address.
    list_display = (
        "id", "event", "destination", "state", "attempts", "next_attempt_at", "last_error",
    )  # fmt: skip
    list_filter = ("state", "destination")
    ordering = ("-id",)


@admin.register(Target)
class TargetAdmin(ReadOnly):
    list_display = ("id", "name", "kind", "user", "email", "slack_user_id", "address")
    exclude = ("webhook_secret", "webhook_url", "transport_settings")
    list_filter = ("kind",)
    list_select_related = ("user",)
    ordering = ("name",)


register_read_only(
    Attempt,
    "id message number started_at finished_at outcome error",
    order="-id",
    filters="outcome",
    related="message",
)
register_read_only(
    Thread, "id destination subject channel ts created_at", order="-id", search="=subject"
)
register_read_only(Pace, "destination paced_until keep_away_until", order="destination")
register_read_only(
    OnCallMember,
    "id rotation position person",
    order="rotation position",
    related="rotation person",
)
register_read_only(
    EscalationStep,
    "id escalation position after_minutes target",
    order="escalation position",
    related="escalation target",
)
register_read_only(
    TeamContact, "id team kind target", order="id", filters="kind", related="team target"
)
register_read_only(Route, "id event scope severity target created_at", order="id", related="target")
register_read_only(
    Escalation,
    "id subject severity opened_at step notices next_at acknowledged_by closed_at",
    order="-id",
    filters="severity",
    search="=subject",
)
register_read_only(AnsweredRequest, "digest at", order="-at")
