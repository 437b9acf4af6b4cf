"""REST API of drills, marks of instances, and drill schedules."""

from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.http.fields import EmptyBody, Filters, Text
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.jobs.resources import JobStepShape
from switches.drills import marked_instances
from switches.episodes import live_drills
from switches.models import Drill, DrillMark, DrillSchedule
from switches.scopes import KEY_PATTERN, SCOPES

from . import services
from .presentation import SKIPPED, step_state

DRILLS = Drill.objects.select_related("job").prefetch_related(
    Prefetch("job__steps", queryset=JobStep.objects.order_by("index"))
)


ONE_SCHEDULE = (
    OpenApiParameter("scope", str, OpenApiParameter.PATH, enum=SCOPES.names),
    OpenApiParameter("key", str, OpenApiParameter.PATH, pattern=f"^{KEY_PATTERN}$"),
)


class DrillBody(EmptyBody):
    switch = Text(help_text="Switch id such as `segment:finance`; not the global switch.")
    mode = Text(
        required=False,
        help_text="`live` (the default) blocks the drill instances for a moment; `dry` only "
        "counts them; `emergency` waits until somebody engages the switch by an emergency order.",
    )
    reason = Text(help_text="Purpose of the drill.")
    every = Text(
        required=False,
        help_text="Also repeat the drill at this interval in whole days, such as `7d`.",
    )


class DrillInstancesBody(EmptyBody):
    pattern = Text(help_text="`core/canary-1`, or `core/*` for all of a service.")


class UnscheduleBody(EmptyBody):
    pass


class DrillFilters(Filters):
    switch = serializers.CharField(required=False, max_length=131)
    mode = serializers.ChoiceField(live_drills.MODES, required=False)


class DrillStepShape(JobStepShape):
    state = serializers.ChoiceField([*JobStep.State.values, SKIPPED])

    def to_representation(self, step: JobStep) -> dict[str, Any]:
        return {**super().to_representation(step), "state": step_state(step)}


class DrillInstanceCountShape(serializers.Serializer[Any]):
    instances = serializers.IntegerField(help_text="Reporting instances that are marked.")
    names = serializers.ListField(child=serializers.CharField(), help_text="Names of the first 20.")


class DrillReachShape(serializers.Serializer[Any]):
    instances = serializers.IntegerField(
        help_text="Marked instances that reported within 30 seconds before the change, or since."
    )
    applied = serializers.IntegerField(help_text="Those of them that applied the change.")
    p50_ms = serializers.IntegerField(allow_null=True, help_text="Median delay from the commit.")
    p99_ms = serializers.IntegerField(allow_null=True, help_text="99th percentile.")
    stragglers = serializers.ListField(child=serializers.CharField(), help_text="At most 20.")


class DrillOrderShape(serializers.Serializer[Any]):
    id = serializers.CharField(help_text="Id of the emergency order.")
    by = serializers.CharField()
    plane = serializers.CharField(help_text="Name of the data plane that accepted it.")
    milliseconds = serializers.IntegerField(
        allow_null=True, help_text="From the order until it was an ordinary engagement."
    )


class DrillMeasurementsShape(serializers.Serializer[Any]):
    look = DrillInstanceCountShape(required=False)
    engage = DrillReachShape(required=False)
    release = DrillReachShape(required=False)
    order = DrillOrderShape(required=False)

    def to_representation(self, measured: Any) -> Any:
        return measured


class DrillShape(Resource[Drill]):
    id = serializers.IntegerField(source="pk")
    switch = serializers.CharField(source="switch_id")
    mode = serializers.ChoiceField(live_drills.MODES)
    scheduled = serializers.BooleanField()
    state = serializers.ChoiceField(
        Job.State.values, source="job.state", help_text="State of the drill's job."
    )
    passed = serializers.BooleanField(allow_null=True, help_text="Null until the drill has ended.")
    why = serializers.CharField(
        source="failure_reason", help_text="Why the drill has not passed, or empty."
    )
    steps = DrillStepShape(source="job.steps", many=True)
    measured = DrillMeasurementsShape(source="measurements")
    reason = serializers.CharField(source="job.reason")
    requested_by = serializers.CharField(source="job.created_by")
    created_at = TimestampField(source="job.created_at")
    engaged_at = TimestampField(allow_null=True)
    ends_by = TimestampField(
        allow_null=True, help_text="Time at which clients end the drill by themselves."
    )
    released_at = TimestampField(allow_null=True)
    finished_at = TimestampField(source="job.finished_at", allow_null=True)


class DrillScheduleShape(Resource[DrillSchedule]):
    switch = serializers.CharField(source="switch_id")
    mode = serializers.ChoiceField(live_drills.MODES)
    every = serializers.CharField(source="interval")
    next_at = TimestampField()
    reason = serializers.CharField()
    created_at = TimestampField()
    created_by = serializers.CharField()


class DrillStartShape(serializers.Serializer[Any]):
    drill = DrillShape()
    schedule = DrillScheduleShape(required=False, help_text="The schedule, if `every` was given.")
    dry_run = serializers.BooleanField(required=False, help_text="True if this was a dry run.")


class DrillInstancesShape(Resource[DrillMark]):
    pattern = serializers.CharField()
    instances = serializers.IntegerField(help_text="Reporting instances that match.")
    created_at = TimestampField()
    created_by = serializers.CharField()


class MarkedDrillInstancesShape(DrillInstancesShape):
    dry_run = serializers.BooleanField(required=False)


class DrillRemovalShape(serializers.Serializer[Any]):
    """The response to a removal: the name of the removed mark or schedule."""

    removed = serializers.CharField()
    dry_run = serializers.BooleanField(required=False)


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

    @extend_schema(request=DrillBody, responses={202: DrillStartShape})
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
    serializer_class = DrillInstancesShape
    ordering = "pattern"
    read_scope = "switches:read"
    write_scope = "switches:write"

    def paginate_queryset(self, queryset: Any) -> Any:
        return marked_instances.count_instances(super().paginate_queryset(queryset) or (), db_now())

    @extend_schema(
        request=DrillInstancesBody,
        responses={200: MarkedDrillInstancesShape, 201: MarkedDrillInstancesShape},
    )
    @mutation(DrillInstancesBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Mark instances for drills; each drill briefly blocks the traffic of its switch on them.

        Requires an approver.
        """
        row, new = services.mark_instances(pattern=body["pattern"], actor=actor, now=now)
        (counted,) = marked_instances.count_instances([row], now)
        return Done(DrillInstancesShape.render(counted), status=201 if new else 200)

    @extend_schema(request=DrillInstancesBody, responses={200: DrillRemovalShape})
    @mutation(DrillInstancesBody)
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

    @extend_schema(request=UnscheduleBody, responses={200: DrillRemovalShape})
    @mutation(UnscheduleBody)
    def delete(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, scope: str, key: str
    ) -> Done:
        """Remove the drill schedule of a switch."""
        services.remove_schedule(scope=scope, key=key, actor=actor, now=now)
        return Done({"removed": f"{scope}:{key}"})
