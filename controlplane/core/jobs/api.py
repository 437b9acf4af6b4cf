"""Job API: list, show, pause, resume, cancel."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.http.fields import EmptyBody, Filters, Text
from controlplane.core.http.permissions import HasScope
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.jobs import control, kinds
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.resources import JobShape, describe_job, job_resource

ROWS = Job.objects.prefetch_related("steps")
LIVE = "live"
MAX_REASON_LENGTH = 2000


class JobFilters(Filters):
    kind = serializers.CharField(required=False, max_length=24)
    state = serializers.ChoiceField(
        [LIVE, *Job.State.values], required=False, help_text="`live` matches all unfinished jobs."
    )
    subject = serializers.CharField(required=False, max_length=200)


class JobActionBody(EmptyBody):
    reason = Text(max_length=MAX_REASON_LENGTH, help_text="Reason, recorded in the audit trail.")


class MayIntervene(HasScope):
    """Permission to pause, resume or cancel a job: requires the scope of the job's kind."""

    def get_scope(self, request: Request, view: Any) -> str:
        return kinds.get_scope(Job.objects.filter(pk=view.kwargs["job_id"]).first())


class JobList(ListView[Job]):
    """Jobs of the job engine, newest first."""

    queryset = ROWS
    serializer_class = JobShape
    filters = JobFilters
    ordering = "-id"
    read_scope = "switches:read"

    def paginate_queryset(self, queryset: Any) -> list[Any]:
        now, jobs = db_now(), super().paginate_queryset(queryset) or ()
        results = kinds.load_results(jobs)
        return [describe_job(job, results.get(job.pk), now) for job in jobs]

    def apply_filters(self, rows: QuerySet[Job], filters: dict[str, Any]) -> QuerySet[Job]:
        if filters.get("state") == LIVE:
            filters = {**filters, "finished_at": None}
            del filters["state"]
        return rows.filter(**filters)


class JobView(ApiView):
    read_scope = "switches:read"
    http_method_names = ["get"]

    @extend_schema(responses=JobShape)
    def get(self, _request: Request, job_id: int) -> Response:
        """Return one job of the job engine."""
        return Response(job_resource(control.get_job(job_id), db_now()))


def build_intervention_view(verb: str, description: str) -> type[ApiView]:
    """Return the API view that applies `verb` (`pause`, `resume` or `cancel`) to a job."""

    class InterventionView(ApiView):
        permission_classes = [MayIntervene]
        http_method_names = ["post"]

        @extend_schema(
            operation_id=f"jobs_{verb}",
            description=description,
            request=JobActionBody,
            responses=JobShape,
        )
        @mutation(JobActionBody)
        def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, job_id: int) -> Done:
            job = control.intervene(
                job_id=job_id, verb=verb, reason=body["reason"], actor=actor, now=now
            )
            return Done(job_resource(job, now))

    return InterventionView


PauseView = build_intervention_view("pause", "Pause the job; its worker stops at its next write.")
ResumeView = build_intervention_view("resume", "Resume a paused job.")
CancelView = build_intervention_view("cancel", "Cancel the job permanently.")
