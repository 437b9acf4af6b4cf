"""Read-only Django admin of the dead letter tables."""

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
from controlplane.core.admin import ReadOnly, register_read_only

register_read_only(
    LetterServer, "name is_away since asked_at error", filters="is_away", order="name"
)
register_read_only(
    LetterStream,
    "id server name origin depth oldest_at arrived_total retried_total vanished_total "
    "sampled_at alarmed_at gone_at",
    filters="source",
    search="server name",
    order="server name",
)
register_read_only(
    LetterGroup,
    "id stream fingerprint error_type pattern first_at last_at",
    related="stream",
    search="=fingerprint error_type",
    order="-id",
)
register_read_only(GroupDay, "id group day arrived", related="group", order="-id")
register_read_only(
    Letter,
    "id stream position error consumer_group attempts retries failed_at size_bytes",
    related="stream",
    search="=position",
    order="-id",
)
register_read_only(Gap, "id stream first last count noticed_at", related="stream", order="-id")
register_read_only(
    DepthMinute, "id stream minute depth most arrived", related="stream", order="-id"
)
register_read_only(
    Replay,
    "job stream action position until rate_per_second",
    filters="action",
    related="job stream",
    order="-job",
)


@admin.register(Departure)
class DepartureAdmin(ReadOnly):
    """Admin pages of removed letters, without the payloads, which may contain secrets."""

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
