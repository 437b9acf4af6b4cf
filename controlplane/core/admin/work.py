"""Admin pages for jobs, gates and messages between apps; read-only."""

from django.contrib import admin

from controlplane.core.admin.site import ReadOnly
from controlplane.core.models import (
    Degradation,
    EventCount,
    ExternalVerdict,
    Gate,
    Hold,
    Job,
    JobEffect,
    JobStep,
    TripRequest,
)


@admin.register(Job)
class JobAdmin(ReadOnly):
    list_display = (
        "id", "kind", "subject", "state", "step_index", "attempts", "heartbeat_at", "stuck_at",
        "created_at", "finished_at", "error",
    )  # fmt: skip
    list_filter = ("state", "kind")
    search_fields = ("=subject", "=key")
    ordering = ("-id",)


@admin.register(JobStep)
class JobStepAdmin(ReadOnly):
    list_display = (
        "id", "job", "index", "name", "state", "attempts", "started_at", "finished_at", "error",
    )  # fmt: skip
    list_filter = ("state",)
    list_select_related = ("job",)
    search_fields = ("=job__subject",)
    ordering = ("-id",)


@admin.register(JobEffect)
class JobEffectAdmin(ReadOnly):
    list_display = ("id", "key", "job", "attempted_at", "done_at")
    list_select_related = ("job",)
    search_fields = ("=key",)
    ordering = ("-id",)


@admin.register(Gate)
class GateAdmin(ReadOnly):
    list_display = ("id", "key", "type", "since", "verdict", "observed_at")
    list_filter = ("type", "verdict")
    search_fields = ("=key",)
    ordering = ("-id",)


@admin.register(Hold)
class HoldAdmin(ReadOnly):
    list_display = ("id", "key", "service", "why", "since")
    search_fields = ("=key", "=service")
    ordering = ("-id",)


@admin.register(ExternalVerdict)
class ExternalVerdictAdmin(ReadOnly):
    list_display = ("name", "verdict", "observed_at", "received_at", "by")
    search_fields = ("=name",)
    ordering = ("name",)


@admin.register(EventCount)
class EventCountAdmin(ReadOnly):
    list_display = ("id", "slo", "instance", "began_at", "ended_at", "good", "total")
    search_fields = ("=slo", "=instance")
    ordering = ("-id",)


@admin.register(Degradation)
class DegradationAdmin(ReadOnly):
    list_display = ("id", "revision", "level", "since")


@admin.register(TripRequest)
class TripRequestAdmin(ReadOnly):
    list_display = ("id", "switch", "source", "fingerprint", "requested_at", "tripped", "why")
    list_filter = ("tripped",)
    search_fields = ("=switch", "=fingerprint", "=key")
    ordering = ("-id",)
