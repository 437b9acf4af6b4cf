"""Serializers of drills for request validation and the OpenAPI document."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from controlplane.core.http.fields import Filters, MutationBody, Text
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.jobs.resources import JobStepShape
from switches.drills import marked_instances
from switches.episodes import live_drills
from switches.models import Drill, DrillMark, DrillSchedule
from switches.scopes import KEY_PATTERN, SCOPES

ONE_SCHEDULE = (
    OpenApiParameter("scope", str, OpenApiParameter.PATH, enum=SCOPES.names),
    OpenApiParameter("key", str, OpenApiParameter.PATH, pattern=f"^{KEY_PATTERN}$"),
)
SKIPPED = "skipped"


def step_state(step: JobStep) -> str:
    """Return the state of the job step, or `skipped` if it had nothing to do."""
    return SKIPPED if step.data.get(SKIPPED) else step.state


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


class DrillStepShape(JobStepShape):
    state = serializers.ChoiceField([*JobStep.State.values, SKIPPED])

    def to_representation(self, step: JobStep) -> dict[str, Any]:
        return {**super().to_representation(step), "state": step_state(step)}


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
    measured = MeasuredShape(source="measurements")
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


class BegunShape(serializers.Serializer[Any]):
    drill = DrillShape()
    schedule = DrillScheduleShape(required=False, help_text="The schedule, if `every` was given.")
    dry_run = serializers.BooleanField(required=False, help_text="True if this was a dry run.")


class DrillMarkListShape(serializers.ListSerializer[DrillMark]):
    """A list of marks; the matching instances of all marks are counted at once."""

    def to_representation(self, data: Any) -> Any:
        return super().to_representation(
            marked_instances.count_instances(list(data), self.context["now"])
        )


class DrillMarkShape(Resource[DrillMark]):
    pattern = serializers.CharField()
    instances = serializers.IntegerField(
        help_text="Matching instances that reported within 30 seconds."
    )
    created_at = TimestampField()
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
