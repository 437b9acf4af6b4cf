"""Jobs over HTTP: list, show, pause, resume, cancel."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.http.fields import Filters, MutationBody, Text
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.jobs import control, kinds
from controlplane.core.jobs.models import Job, JobStep
from controlplane.core.jobs.resources import job_resource

if TYPE_CHECKING:
    from rest_framework.views import APIView

ROWS = Job.objects.prefetch_related("steps")
LIVE = "live"
MAX_REASON_LENGTH = 2000


class ProgressShape(serializers.Serializer[Any]):
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    rate_per_second = serializers.FloatField(allow_null=True)


class JobStepShape(serializers.Serializer[JobStep]):
    name = serializers.CharField()
    state = serializers.ChoiceField(JobStep.State.values)
    attempts = serializers.IntegerField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField()


class JobShape(serializers.Serializer[Job]):
    id = serializers.IntegerField()
    kind = serializers.CharField()
    title = serializers.CharField()
    subject = serializers.CharField(help_text="What it is about: `segment:finance`.")
    state = serializers.ChoiceField(Job.State.values)
    step_index = serializers.IntegerField()
    progress = ProgressShape()
    checkpoint = serializers.JSONField(
        help_text="Where its present step goes on, or null; every kind has its own form."
    )
    attempts = serializers.IntegerField()
    heartbeat_at = serializers.DateTimeField(allow_null=True)
    stuck = serializers.BooleanField(help_text="To be worked on, and no life for five minutes.")
    hold_reason = serializers.CharField()
    error = serializers.CharField()
    outcome = serializers.CharField()
    reason = serializers.CharField()
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    paused_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    compensated_at = serializers.DateTimeField(allow_null=True)
    compensation_failed_at = serializers.DateTimeField(allow_null=True)
    steps = JobStepShape(many=True)
    path = serializers.CharField(help_text="The page about it.")

    def to_representation(self, job: Job) -> dict[str, Any]:
        return job_resource(job, self.context["now"])


class JobFilters(Filters):
    kind = serializers.CharField(required=False, max_length=24)
    state = serializers.ChoiceField(
        [LIVE, *Job.State.values], required=False, help_text="`live`: not over yet."
    )
    subject = serializers.CharField(required=False, max_length=200)


class InterventionBody(MutationBody):
    reason = Text(max_length=MAX_REASON_LENGTH, help_text="Why; it is kept in the audit trail.")


class MayIntervene(BasePermission):
    """Requires the scope of the job's kind."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        actor = getattr(request, "actor", None)
        if actor is None:
            return False
        if request.method in view.allowed_methods:  # Otherwise a 405 follows, whoever asks.
            actor.require(_scope_of(view.kwargs["job_id"]))
        return True


class JobList(ListView[Job]):
    """Every job, newest first."""

    queryset = ROWS
    serializer_class = JobShape
    filters = JobFilters
    ordering = "-id"
    read_scope = "switches:read"

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": db_now()}

    def chosen(self, rows: QuerySet[Job], filters: dict[str, Any]) -> QuerySet[Job]:
        wanted = dict(filters)
        if wanted.get("state") == LIVE:
            del wanted["state"]
            wanted["finished_at"] = None
        return rows.filter(**wanted)


class JobView(ApiView):
    read_scope = "switches:read"
    http_method_names = ["get"]

    @extend_schema(responses=JobShape)
    def get(self, _request: Request, job_id: int) -> Response:
        """Return one job."""
        return Response(job_resource(control.get_job(job_id), db_now()))


class Intervention(ApiView):
    """The base of the three actions."""

    permission_classes = [MayIntervene]
    http_method_names = ["post"]


class PauseView(Intervention):
    @extend_schema(operation_id="jobs_pause", request=InterventionBody, responses=JobShape)
    @mutation(InterventionBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, job_id: int) -> Done:
        """Pause the job; its worker stops at its next write."""
        return _done("pause", body, actor, now, job_id)


class ResumeView(Intervention):
    @extend_schema(operation_id="jobs_resume", request=InterventionBody, responses=JobShape)
    @mutation(InterventionBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, job_id: int) -> Done:
        """Resume a paused job."""
        return _done("resume", body, actor, now, job_id)


class CancelView(Intervention):
    @extend_schema(operation_id="jobs_cancel", request=InterventionBody, responses=JobShape)
    @mutation(InterventionBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, job_id: int) -> Done:
        """Cancel the job for good."""
        return _done("cancel", body, actor, now, job_id)


def _done(verb: str, body: dict[str, Any], actor: Actor, now: datetime, job_id: int) -> Done:
    job = control.intervene(job_id=job_id, verb=verb, reason=body["reason"], actor=actor, now=now)
    return Done(job_resource(job, now))


def _scope_of(job_id: int) -> str:
    """Return the scope to intervene in a job; the usual one for an unknown job."""
    name = Job.objects.filter(pk=job_id).values_list("kind", flat=True).first()
    kind = kinds.get_kinds().get(name or "")
    return kind.scope if kind else "switches:write"
