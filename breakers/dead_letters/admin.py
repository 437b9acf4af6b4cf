"""Django's admin over the tables of dead letters: read-only."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from breakers.dead_letters.models import (
    Departure,
    DepthMinute,
    Gap,
    GroupDay,
    Letter,
    LetterGroup,
    LetterServer,
    LetterStream,
    Replay,
)
from controlplane.core.admin import ReadOnly


@admin.register(LetterServer)
class LetterServerAdmin(ReadOnly):
    list_display = ("name", "is_away", "since", "asked_at", "error")
    list_filter = ("is_away",)
    ordering = ("name",)


@admin.register(LetterStream)
class LetterStreamAdmin(ReadOnly):
    list_display = (
        "id", "server", "name", "origin", "depth", "oldest_at", "arrived_total", "retried_total",
        "vanished_total", "sampled_at", "alarmed_at", "gone_at",
    )  # fmt: skip
    list_filter = ("source",)
    search_fields = ("server", "name")
    ordering = ("server", "name")


@admin.register(LetterGroup)
class LetterGroupAdmin(ReadOnly):
    list_display = ("id", "stream", "fingerprint", "error_type", "pattern", "first_at", "last_at")
    list_select_related = ("stream",)
    search_fields = ("=fingerprint", "error_type")
    ordering = ("-id",)


@admin.register(GroupDay)
class GroupDayAdmin(ReadOnly):
    list_display = ("id", "group", "day", "arrived")
    list_select_related = ("group",)
    ordering = ("-id",)


@admin.register(Letter)
class LetterAdmin(ReadOnly):
    list_display = (
        "id", "stream", "position", "error", "consumer_group", "attempts", "retries", "failed_at",
        "size_bytes",
    )  # fmt: skip
    list_select_related = ("stream",)
    search_fields = ("=position",)
    ordering = ("-id",)


@admin.register(Gap)
class GapAdmin(ReadOnly):
    list_display = ("id", "stream", "first", "last", "count", "noticed_at")
    list_select_related = ("stream",)
    ordering = ("-id",)


@admin.register(DepthMinute)
class DepthMinuteAdmin(ReadOnly):
    list_display = ("id", "stream", "minute", "depth", "most", "arrived")
    list_select_related = ("stream",)
    ordering = ("-id",)


@admin.register(Replay)
class ReplayAdmin(ReadOnly):
    list_display = ("job", "stream", "action", "position", "until", "rate_per_second")
    list_filter = ("action",)
    list_select_related = ("job", "stream")
    ordering = ("-job",)


@admin.register(Departure)
class DepartureAdmin(ReadOnly):
    """Without the payloads: what is secret in them is shown redacted, on their own pages."""

    list_display = (
        "id", "stream", "position", "action", "state", "by", "new_id", "intended_at", "done_at",
    )  # fmt: skip
    list_filter = ("action", "state")
    list_select_related = ("stream",)
    exclude = ("fields", "edited")
    search_fields = ("=position", "=new_id", "=by")
    ordering = ("-id",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Departure]:
        return super().get_queryset(request).defer("fields", "edited")
