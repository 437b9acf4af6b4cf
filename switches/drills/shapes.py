"""Serializers of drills for request validation and the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from controlplane.core.http.fields import Filters, MutationBody, Text
from controlplane.core.jobs.models import Job, JobStep
from switches.drills import marked_instances
from switches.episodes import live_drills
from switches.models import Drill, DrillMark, DrillSchedule
from switches.scopes import KEY_PATTERN, SCOPES

from . import resources

ONE_SCHEDULE = (
    OpenApiParameter("scope", str, OpenApiParameter.PATH, enum=SCOPES.names),
    OpenApiParameter("key", str, OpenApiParameter.PATH, pattern=f"^{KEY_PATTERN}$"),
)


class DrillBody(MutationBody):
    switch = Text(help_text="Switch id such as `segment:finance`; not the global switch.")
    mode = Text(
        required=False,
        help_text="`live` (the default) blocks the marked instances for a moment; `dry` only "
        "counts them.",
    )
    reason = Text(help_text="Purpose of the drill.")
    every = Text(
        required=False,
        help_text="Also repeat the drill at this interval in whole days, such as `7d`.",
    )


class MarkBody(MutationBody):
    pattern = Text(help_text="`core/canary-1`, or `core/*` for all of a service.")


class UnscheduleBody(MutationBody):
    pass


class DrillFilters(Filters):
    switch = serializers.CharField(required=False, max_length=131)
    mode = serializers.ChoiceField(live_drills.MODES, required=False)


class DrillStepShape(serializers.Serializer[Any]):
    name = serializers.CharField()
    state = serializers.ChoiceField([*JobStep.State.values, resources.SKIPPED])
    attempts = serializers.IntegerField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField()


class LookedShape(serializers.Serializer[Any]):
    instances = serializers.IntegerField(
        help_text="Marked instances that reported within 30 seconds."
    )
    names = serializers.ListField(child=serializers.CharField(), help_text="Names of the first 20.")


class DrillReachShape(serializers.Serializer[Any]):
    instances = serializers.IntegerField(
        help_text="Marked instances that reported within 30 seconds before the change, or since."
    )
    applied = serializers.IntegerField(help_text="Those of them that applied the change.")
    p50_ms = serializers.IntegerField(allow_null=True, help_text="Median delay from the commit.")
    p99_ms = serializers.IntegerField(allow_null=True, help_text="99th percentile.")
    stragglers = serializers.ListField(child=serializers.CharField(), help_text="At most 20.")


class MeasuredShape(serializers.Serializer[Any]):
    look = LookedShape(required=False)
    engage = DrillReachShape(required=False)
    release = DrillReachShape(required=False)


class DrillShape(serializers.Serializer[Drill]):
    id = serializers.IntegerField()
    switch = serializers.CharField()
    mode = serializers.ChoiceField(live_drills.MODES)
    scheduled = serializers.BooleanField()
    state = serializers.ChoiceField(Job.State.values, help_text="State of the drill's job.")
    passed = serializers.BooleanField(allow_null=True, help_text="Null until the drill has ended.")
    why = serializers.CharField(help_text="Why the drill has not passed, or empty.")
    steps = DrillStepShape(many=True)
    measured = MeasuredShape()
    reason = serializers.CharField()
    requested_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    engaged_at = serializers.DateTimeField(allow_null=True)
    ends_by = serializers.DateTimeField(
        allow_null=True, help_text="Time at which clients end the drill by themselves."
    )
    released_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, drill: Drill) -> dict[str, Any]:
        return resources.drill_resource(drill)


class DrillScheduleShape(serializers.Serializer[DrillSchedule]):
    switch = serializers.CharField()
    mode = serializers.ChoiceField(live_drills.MODES)
    every = serializers.CharField()
    next_at = serializers.DateTimeField()
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField()

    def to_representation(self, row: DrillSchedule) -> dict[str, Any]:
        return resources.schedule_resource(row)


class BegunShape(serializers.Serializer[Any]):
    drill = DrillShape()
    schedule = DrillScheduleShape(required=False, help_text="The schedule, if `every` was given.")
    dry_run = serializers.BooleanField(required=False, help_text="True if this was a dry run.")


class DrillMarkListShape(serializers.ListSerializer[DrillMark]):
    """A list of marks, whose matching instances are counted together."""

    def to_representation(self, data: Any) -> Any:
        rows = list(data)
        there = marked_instances.count_by_pattern(
            [row.pattern for row in rows], self.context["now"]
        )
        return [resources.mark_resource(row, there[row.pattern]) for row in rows]


class DrillMarkShape(serializers.Serializer[DrillMark]):
    pattern = serializers.CharField()
    instances = serializers.IntegerField(
        help_text="Matching instances that reported within 30 seconds."
    )
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField()

    class Meta:
        list_serializer_class = DrillMarkListShape


class DrillMarkedShape(DrillMarkShape):
    dry_run = serializers.BooleanField(required=False)

    class Meta:
        list_serializer_class = serializers.ListSerializer


class DrillGoneShape(serializers.Serializer[Any]):
    """The name of a removed mark or schedule."""

    removed = serializers.CharField()
    dry_run = serializers.BooleanField(required=False)
