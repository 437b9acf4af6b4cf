"""Read-only Django admin of drills, marks and schedules."""

from django.contrib import admin

from controlplane.core.admin import ReadOnly
from switches.models import Drill, DrillMark, DrillSchedule


@admin.register(Drill)
class DrillAdmin(ReadOnly):
    list_display = (
        "job", "switch", "mode", "scheduled", "live", "passed", "engaged_at", "released_at",
    )  # fmt: skip
    list_filter = ("mode", "passed", "live")
    search_fields = ("=switch__id",)
    list_select_related = ("job", "switch")
    ordering = ("-job_id",)


@admin.register(DrillMark)
class DrillMarkAdmin(ReadOnly):
    list_display = ("pattern", "created_at", "created_by")
    ordering = ("pattern",)


@admin.register(DrillSchedule)
class DrillScheduleAdmin(ReadOnly):
    list_display = ("switch", "mode", "every_days", "next_at", "reason", "created_by")
    list_select_related = ("switch",)
    ordering = ("next_at",)
