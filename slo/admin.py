"""Read-only Django admin of SLOs; changes are made on their own pages.

Minutes, hours and samples are left out: Django's admin can't show composite keys, and an SLO's page
draws them.
"""

from django.contrib import admin

from controlplane.core.admin import ReadOnly
from slo.models import (
    Alert,
    DeferredUpdate,
    DeltaBatch,
    EvaluatedMinute,
    Exclusion,
    ReportedEvents,
    Series,
    Sli,
    Slo,
    SloStatus,
    ThresholdRule,
)


@admin.register(Slo)
class SloAdmin(ReadOnly):
    list_display = (
        "id", "name", "service", "kind", "target", "window_days", "version", "changed_at",
        "removed_at",
    )  # fmt: skip
    list_filter = ("kind",)
    search_fields = ("name", "service", "owner")
    ordering = ("name", "-id")


@admin.register(SloStatus)
class StandingAdmin(ReadOnly):
    list_display = ("slo", "minute", "state", "since", "remaining_ratio", "exhausts_at")
    list_filter = ("state",)
    list_select_related = ("slo",)
    search_fields = ("slo__name",)
    ordering = ("slo__name",)


@admin.register(EvaluatedMinute)
class TurnAdmin(ReadOnly):
    list_display = ("minute", "judged_at", "slos", "took_ms")
    ordering = ("-minute",)


@admin.register(Exclusion)
class ExclusionAdmin(ReadOnly):
    list_display = (
        "id", "slo", "starts_at", "ends_at", "created_by", "created_at", "removed_by", "removed_at",
    )  # fmt: skip
    list_select_related = ("slo",)
    search_fields = ("slo__name", "reason")
    ordering = ("-id",)


@admin.register(Alert)
class AlertAdmin(ReadOnly):
    list_display = (
        "id", "kind", "rule", "subject", "severity", "opened_at", "firing_at", "acknowledged_by",
        "resolved_at",
    )  # fmt: skip
    list_filter = ("kind", "severity")
    search_fields = ("rule", "subject")
    ordering = ("-id",)


@admin.register(ThresholdRule)
class ThresholdRuleAdmin(ReadOnly):
    list_display = (
        "name", "metric", "statistic", "window", "comparison", "value", "severity", "is_enabled",
        "built_in", "changed_at",
    )  # fmt: skip
    list_filter = ("severity", "is_enabled", "built_in")
    search_fields = ("name", "title", "metric")
    ordering = ("name",)


@admin.register(Sli)
class SliAdmin(ReadOnly):
    list_display = (
        "id", "slo", "metric", "service", "edge_ms", "first", "last", "asked_to", "source_error",
    )  # fmt: skip
    list_select_related = ("slo",)
    search_fields = ("=slo__name", "=metric", "=service")
    ordering = ("-id",)


@admin.register(Series)
class SeriesAdmin(ReadOnly):
    list_display = ("id", "sli", "source", "boot", "started_at", "at", "good", "total")
    list_select_related = ("sli",)
    search_fields = ("=source", "=sli__slo__name")
    ordering = ("-id",)


@admin.register(DeltaBatch)
class BatchAdmin(ReadOnly):
    list_display = ("id", "sender", "batch_id", "received_at")
    search_fields = ("=batch_id", "=sender")
    ordering = ("-id",)


@admin.register(ReportedEvents)
class ReportedAdmin(ReadOnly):
    list_display = ("id", "slo", "instance", "began_at", "ended_at", "good", "total")
    search_fields = ("=slo", "=instance")
    ordering = ("-id",)


@admin.register(DeferredUpdate)
class DelayedAdmin(ReadOnly):
    list_display = ("id", "sli", "began", "ended", "good", "total", "covers")
    list_select_related = ("sli",)
    ordering = ("-id",)
