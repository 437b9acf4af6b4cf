"""Django's admin over breakers: looked at here, changed on their own pages."""

from django.contrib import admin

from breakers.models import (
    Alarm,
    BreakerState,
    Channel,
    Dependency,
    Minute,
    Override,
    Probe,
    Registry,
    Service,
    Transition,
)
from controlplane.core.admin import ReadOnly


@admin.register(Registry)
class RegistryAdmin(ReadOnly):
    list_display = ("id", "version", "changed_at")


@admin.register(Service)
class ServiceAdmin(ReadOnly):
    list_display = ("slug", "name", "kind", "level", "owner", "probe_url", "changed_at")
    list_filter = ("kind", "level")
    search_fields = ("slug", "name", "owner")
    ordering = ("slug",)


@admin.register(Dependency)
class DependencyAdmin(ReadOnly):
    list_display = (
        "id", "caller", "callee", "protocol", "criticality", "owner", "version", "changed_at",
        "removed_at",
    )  # fmt: skip
    list_filter = ("criticality", "mode")
    search_fields = ("caller", "callee", "owner")
    ordering = ("caller", "callee")


@admin.register(Channel)
class ChannelAdmin(ReadOnly):
    list_display = ("name", "kind", "producer", "consumer", "group", "protocol", "changed_at")
    list_filter = ("kind",)
    search_fields = ("name",)
    ordering = ("name",)


@admin.register(Override)
class OverrideAdmin(ReadOnly):
    list_display = (
        "id", "dependency", "mode", "set_by_name", "set_at", "expires_at", "version", "ended_at",
        "ended_why", "ended_by",
    )  # fmt: skip
    list_filter = ("mode", "ended_why")
    list_select_related = ("dependency",)
    search_fields = ("dependency__caller", "dependency__callee", "reason")
    ordering = ("-id",)


@admin.register(BreakerState)
class BreakerStateAdmin(ReadOnly):
    list_display = (
        "id", "dependency", "instance", "state", "mode", "since", "failure_rate", "slow_rate",
        "calls", "changed_at",
    )  # fmt: skip
    list_filter = ("state", "mode")
    list_select_related = ("dependency",)
    search_fields = ("=instance", "=dependency__caller", "=dependency__callee")
    ordering = ("-id",)


@admin.register(Transition)
class TransitionAdmin(ReadOnly):
    list_display = (
        "id", "dependency", "instance", "n", "from_state", "to_state", "at", "received_at", "cause",
    )  # fmt: skip
    list_filter = ("to_state",)
    list_select_related = ("dependency",)
    search_fields = ("=instance", "=dependency__caller", "=dependency__callee")
    ordering = ("-id",)


@admin.register(Minute)
class MinuteAdmin(ReadOnly):
    list_display = (
        "id", "dependency", "minute", "worst", "open", "half_open", "instances", "success",
        "failure", "timeout", "slow", "rejected", "fallback", "retry",
    )  # fmt: skip
    list_select_related = ("dependency",)
    search_fields = ("=dependency__caller", "=dependency__callee")
    ordering = ("-id",)


@admin.register(Alarm)
class AlarmAdmin(ReadOnly):
    list_display = ("id", "rule", "subject", "severity", "value", "limit", "since", "closed_at")
    list_filter = ("rule", "severity")
    search_fields = ("subject",)
    ordering = ("-id",)


@admin.register(Probe)
class ProbeAdmin(ReadOnly):
    list_display = ("service", "is_away", "failures", "since", "checked_at", "took_ms", "error")
    list_filter = ("is_away",)
    list_select_related = ("service",)
    ordering = ("service",)
