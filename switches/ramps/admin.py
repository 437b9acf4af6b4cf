"""Read-only Django admin of ramps."""

from django.contrib import admin

from controlplane.core.admin import ReadOnly
from switches.models import Ramp


@admin.register(Ramp)
class RampAdmin(ReadOnly):
    list_display = (
        "job", "switch", "episode", "requested_by_name", "automatic", "live", "blind_since",
    )  # fmt: skip
    list_filter = ("live", "automatic")
    search_fields = ("=switch__id",)
    list_select_related = ("job", "switch", "episode")
    ordering = ("-job_id",)
