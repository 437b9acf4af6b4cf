"""REST API of switches: list, detail, description and history."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core import team_filter
from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.comments.api import CommentList
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ApiView, ColumnListView, Done, ListView, mutation
from controlplane.core.instances.check_series import HOUR_SECONDS, MINUTE_SECONDS
from controlplane.core.instances.models import CheckCount
from controlplane.core.page_registry import PREVIEW_FIELDS
from switches import comment_kinds, services
from switches.blast import blast_radius, current_refusals
from switches.models import Episode, Switch, SwitchQuerySet
from switches.services.registration import DESCRIPTIVE, identify
from switches.switch_list import COLUMNS, read_resource, serialize_rows, with_episode_and_ramp

from .bodies import CallFilters, DescribeSwitchBody, SwitchFilters
from .shapes import (
    ONE_SWITCH,
    BlastRadiusShape,
    CallsShape,
    EpisodeShape,
    PreviewShape,
    SwitchActionShape,
    SwitchShape,
)


def read_switch_resource(scope: str, key: str) -> dict[str, Any]:
    """Return the API resource of a switch; an unknown switch is shown as released."""
    return read_resource(identify(scope, key))


class SwitchList(ColumnListView[Switch]):
    """Every switch that was ever registered or engaged, in order of id."""

    queryset = with_episode_and_ramp()
    serializer_class = SwitchShape
    filters = SwitchFilters
    ordering = "id"
    columns = COLUMNS
    uncached_filters = frozenset({team_filter.PARAMETER})
    read_scope = "switches:read"

    def apply_filters(self, rows: QuerySet[Switch], filters: dict[str, Any]) -> QuerySet[Switch]:
        assert isinstance(rows, SwitchQuerySet)  # noqa: S101 - it is that of `queryset` above
        if "scope" in filters:
            rows = rows.filter(scope=filters["scope"])
        if "state" in filters:
            rows = rows.in_state(filters["state"])
        if "overdue" in filters:
            overdue = Switch.objects.overdue().values("pk")
            rows = rows.overdue() if filters["overdue"] else rows.exclude(pk__in=overdue)
        if "q" in filters:
            searched = ("id__icontains", "owner__icontains", "description__icontains")
            rows = rows.filter(Q(**dict.fromkeys(searched, filters["q"]), _connector=Q.OR))
        if "team" in filters:
            team = team_filter.parse_team_filter(actor_of(self.request), filters["team"])
            rows, _ = rows.split_by_team(team)
        return rows

    def present(self, rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
        return serialize_rows(rows)


class SwitchDetail(ApiView):
    path_parameters = ONE_SWITCH
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(responses=SwitchShape)
    def get(self, request: Request, scope: str, key: str) -> Response:
        """Return one switch. An unknown key is a released switch."""
        return Response(read_switch_resource(scope, key))

    @extend_schema(request=DescribeSwitchBody, responses=SwitchActionShape)
    @mutation(DescribeSwitchBody)
    def patch(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, scope: str, key: str
    ) -> Done:
        """Set the owner, description or runbook of a switch."""
        if not body:
            raise InvalidInput({"body": [f"Name at least one of {', '.join(DESCRIPTIVE)}."]})
        services.describe(scope=scope, key=key, changes=body, actor=actor, now=now)
        return Done(read_switch_resource(scope, key))


class EpisodeHistoryView(ListView[Episode]):
    """The episodes of one switch, newest first."""

    queryset = Episode.objects.all()
    serializer_class = EpisodeShape
    path_parameters = ONE_SWITCH
    ordering = "-id"
    read_scope = "switches:read"

    def apply_filters(self, rows: QuerySet[Episode], filters: dict[str, Any]) -> QuerySet[Episode]:
        return rows.filter(switch_id=identify(self.kwargs["scope"], self.kwargs["key"]))


class EpisodeCommentsView(CommentList):
    """The comments on a switch's latest episode, newest first."""

    path_parameters = ONE_SWITCH
    read_scope = "switches:read"
    write_scope = "switches:write"
    kind = comment_kinds.KIND

    def find_key(self, **path: Any) -> str:
        switch_id = identify(path["scope"], path["key"])
        latest = Episode.objects.filter(switch_id=switch_id).order_by("-id").first()
        if latest is None:
            raise NotFound(f"{switch_id} was never engaged, so there is no episode.")
        return str(latest.pk)


class CallsView(ListView[CheckCount]):
    """Allowed and blocked calls of one switch by the minute or hour, newest first.

    Counts come from the reports and checks of services. A span without any is left out.
    """

    queryset = CheckCount.objects.all()
    serializer_class = CallsShape
    filters = CallFilters
    path_parameters = ONE_SWITCH
    ordering = "-start"
    read_scope = "switches:read"

    def apply_filters(
        self, rows: QuerySet[CheckCount], filters: dict[str, Any]
    ) -> QuerySet[CheckCount]:
        seconds = HOUR_SECONDS if filters.get("by") == "hour" else MINUTE_SECONDS
        rows = rows.filter(
            switch=identify(self.kwargs["scope"], self.kwargs["key"]), seconds=seconds
        )
        if "since" in filters:
            rows = rows.filter(start__gte=filters["since"].timestamp())
        if "until" in filters:
            rows = rows.filter(start__lt=filters["until"].timestamp())
        return rows


class PreviewView(ApiView):
    path_parameters = ONE_SWITCH
    read_scope = "switches:read"

    @extend_schema(responses=PreviewShape)
    def get(self, request: Request, scope: str, key: str) -> Response:
        """Return the switch's blast radius: callers with their rates, and overlapping switches."""
        switch_id, now = identify(scope, key), db_now()
        found = replace(blast_radius(switch_id, now), refusals=current_refusals(switch_id))
        previews = [read(switch_id, now) for read in PREVIEW_FIELDS.functions()]
        more = {field: value for fields in previews for field, value in fields.items()}
        return Response({**more, **BlastRadiusShape.render(found)})
