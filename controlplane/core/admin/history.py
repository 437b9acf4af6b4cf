"""Read-only admin pages for history and current activity."""

from django.contrib import admin

from controlplane.core.admin.site import ReadOnly
from controlplane.core.models import (
    Acknowledgement,
    Approval,
    AuditEntry,
    AuditRound,
    Heartbeat,
    IdempotencyKey,
    Instance,
    Tick,
)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("id", "at", "actor_type", "actor_name", "action", "target", "reason")
    search_fields = ("=target", "=action", "=actor_name")
    ordering = ("-id",)


@admin.register(AuditRound)
class AuditRoundAdmin(ReadOnly):
    """Progress of the trail's verification; `manage.py audit verify` checks the whole trail."""

    list_display = ("id", "begun_at", "reached_id", "whole_id", "whole_at", "problem", "broken_at")


@admin.register(Approval)
class ApprovalAdmin(ReadOnly):
    """Decided on the approvals page, where the rules of who may are."""

    list_display = ("id", "kind", "target", "state", "requested_by", "requested_at", "decided_by")
    list_filter = ("state", "kind")
    ordering = ("-id",)


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnly):
    list_display = ("id", "actor", "method", "path", "key", "status", "created_at")
    search_fields = ("=key", "=actor")
    ordering = ("-id",)


@admin.register(Instance)
class InstanceAdmin(ReadOnly):
    list_display = (
        "id", "heard_at", "applied_epoch", "applied_version", "reported_at", "config_version",
    )  # fmt: skip
    search_fields = ("=id", "=service")
    ordering = ("id",)


@admin.register(Acknowledgement)
class AcknowledgementAdmin(ReadOnly):
    list_display = ("id", "acknowledged_at", "instance", "epoch", "version")
    search_fields = ("=instance",)
    ordering = ("-id",)


@admin.register(Tick)
class TickAdmin(ReadOnly):
    list_display = ("name", "ran_at", "ran_by")


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnly):
    list_display = ("name", "at")
