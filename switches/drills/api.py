"""REST API of drills, marks of instances, and drill schedules."""

from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.jobs.models import JobStep
from switches.drills import marked_instances
from switches.drills.shapes import (
    ONE_SCHEDULE,
    BegunShape,
    DrillBody,
    DrillFilters,
    DrillGoneShape,
    DrillMarkedShape,
    DrillMarkShape,
    DrillScheduleShape,
    DrillShape,
    MarkBody,
    UnscheduleBody,
)
from switches.episodes import live_drills
from switches.models import Drill, DrillMark, DrillSchedule

from . import services

DRILLS = Drill.objects.select_related("job").prefetch_related(
    Prefetch("job__steps", queryset=JobStep.objects.order_by("index"))
)


class DrillList(ListView[Drill]):
    """Drills, newest first."""

    queryset = DRILLS
    serializer_class = DrillShape
    filters = DrillFilters
    ordering = "-job_id"
    read_scope = "switches:read"
    write_scope = "switches:write"

    def apply_filters(self, rows: QuerySet[Drill], filters: dict[str, Any]) -> QuerySet[Drill]:
        return rows.filter(**filters)

    @extend_schema(request=DrillBody, responses={202: BegunShape})
    @mutation(DrillBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Start a drill of a switch on the instances that are marked for drills."""
        scope, _, key = body["switch"].partition(":")
        drill = services.begin_and_schedule(
            scope=scope,
            key=key,
            mode=body.get("mode", live_drills.LIVE),
            reason=body["reason"],
            every=body.get("every"),
            actor=actor,
            now=now,
        )
        begun: dict[str, Any] = {"drill": DrillShape.render(DRILLS.get(pk=drill.pk))}
        if "every" in body:
            row = DrillSchedule.objects.get(switch_id=drill.switch_id)
            begun["schedule"] = DrillScheduleShape.render(row)
        return Done(begun, status=202)


class DrillDetail(ApiView):
    path_parameters = (OpenApiParameter("drill_id", int, OpenApiParameter.PATH),)
    read_scope = "switches:read"

    @extend_schema(responses=DrillShape)
    def get(self, request: Request, drill_id: int) -> Response:
        """Return one drill. To end it early, cancel the job with the same id."""
        drill = DRILLS.filter(pk=drill_id).first()
        if drill is None:
            raise NotFound(f"There is no drill {drill_id}.")
        return Response(DrillShape.render(drill))


class MarkList(ListView[DrillMark]):
    """Marks of instances that take part in drills."""

    queryset = DrillMark.objects.all()
    serializer_class = DrillMarkShape
    ordering = "pattern"
    read_scope = "switches:read"
    write_scope = "switches:write"

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": db_now()}

    @extend_schema(request=MarkBody, responses={200: DrillMarkedShape, 201: DrillMarkedShape})
    @mutation(MarkBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Mark instances for drills; each drill blocks their traffic for a moment.

        Requires an approver.
        """
        row, new = services.mark_instances(pattern=body["pattern"], actor=actor, now=now)
        (counted,) = marked_instances.count_instances([row], now)
        return Done(DrillMarkShape.render(counted), status=201 if new else 200)

    @extend_schema(request=MarkBody, responses={200: DrillGoneShape})
    @mutation(MarkBody)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Remove a mark; drills in progress stop measuring its instances."""
        services.remove_mark(pattern=body["pattern"], actor=actor, now=now)
        return Done({"removed": body["pattern"].strip()})


class ScheduleList(ListView[DrillSchedule]):
    """Scheduled drills."""

    queryset = DrillSchedule.objects.all()
    serializer_class = DrillScheduleShape
    ordering = "id"
    read_scope = "switches:read"


class ScheduleDetail(ApiView):
    path_parameters = ONE_SCHEDULE
    write_scope = "switches:write"

    @extend_schema(request=UnscheduleBody, responses={200: DrillGoneShape})
    @mutation(UnscheduleBody)
    def delete(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, scope: str, key: str
    ) -> Done:
        """Remove the drill schedule of a switch."""
        services.remove_schedule(scope=scope, key=key, actor=actor, now=now)
        return Done({"removed": f"{scope}:{key}"})
