"""Read-only admin of messages, targets, routes and escalations, which have pages for changes."""

from django.contrib import admin

from controlplane.core.admin.site import ReadOnly
from controlplane.core.models import Attempt, Escalation, OutboxMessage, Pace, Thread

from .models import AnsweredRequest, EscalationStep, OnCallMember, Route, Target


@admin.register(OutboxMessage)
class OutboxMessageAdmin(ReadOnly):
    """Messages without their payload, which may hold a secret address."""

    exclude = ("payload",)
    list_display = (
        "id", "event", "destination", "state", "attempts", "next_attempt_at", "last_error",
    )  # fmt: skip
    list_filter = ("state", "destination")
    ordering = ("-id",)


@admin.register(Attempt)
class AttemptAdmin(ReadOnly):
    list_display = ("id", "message", "number", "started_at", "finished_at", "outcome", "error")
    list_filter = ("outcome",)
    list_select_related = ("message",)
    ordering = ("-id",)


@admin.register(Thread)
class ThreadAdmin(ReadOnly):
    list_display = ("id", "destination", "subject", "channel", "ts", "created_at")
    search_fields = ("=subject",)
    ordering = ("-id",)


@admin.register(Pace)
class PaceAdmin(ReadOnly):
    list_display = ("destination", "paced_until", "keep_away_until")
    ordering = ("destination",)


@admin.register(Target)
class TargetAdmin(ReadOnly):
    """Targets without their secrets; they are edited on the targets page."""

    list_display = ("id", "name", "kind", "user", "email", "slack_user_id", "address")
    exclude = ("webhook_secret", "webhook_url", "transport_settings")
    list_filter = ("kind",)
    list_select_related = ("user",)
    ordering = ("name",)


@admin.register(OnCallMember)
class OnCallMemberAdmin(ReadOnly):
    list_display = ("id", "rotation", "position", "person")
    list_select_related = ("rotation", "person")
    ordering = ("rotation", "position")


@admin.register(EscalationStep)
class EscalationStepAdmin(ReadOnly):
    list_display = ("id", "escalation", "position", "after_minutes", "target")
    list_select_related = ("escalation", "target")
    ordering = ("escalation", "position")


@admin.register(Route)
class RouteAdmin(ReadOnly):
    list_display = ("id", "event", "scope", "severity", "target", "created_at")
    list_select_related = ("target",)
    ordering = ("id",)


@admin.register(Escalation)
class EscalationAdmin(ReadOnly):
    list_display = (
        "id", "subject", "severity", "opened_at", "step", "notices", "next_at", "acknowledged_by",
        "closed_at",
    )  # fmt: skip
    list_filter = ("severity",)
    search_fields = ("=subject",)
    ordering = ("-id",)


@admin.register(AnsweredRequest)
class AnsweredRequestAdmin(ReadOnly):
    list_display = ("digest", "at")
    ordering = ("-at",)
