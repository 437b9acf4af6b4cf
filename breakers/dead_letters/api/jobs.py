"""API endpoints of bulk jobs: plan, start, list, pause, resume and cancel."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from breakers.dead_letters.bulk import edit_preview, eligibility, replays
from breakers.dead_letters.letters.field_edits import FieldEdit
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.removals import settlement
from breakers.dead_letters.resources import DeadLetterJobShape, replay_resource
from controlplane.core.actors import Actor
from controlplane.core.approvals.api import ApprovalShape
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.http.views import Done, ListView, mutation
from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job

from .bodies import LIVE, DeadLetterJobActionBody, DeadLetterJobBody, ReplayFilters, ServerFilter
from .messages import WRITE, DeadLetterIdView, find_letter_stream
from .shapes import SERVER, DeadLetterJobPlanShape, PurgeApprovalShape

ROWS = Job.objects.filter(kind=replays.KIND).select_related("replay__stream")
ROWS = ROWS.prefetch_related("steps")
EMPTY = "Must not be empty; omit it to select all."
JOB_OR_APPROVAL = PolymorphicProxySerializer(
    component_name="DeadLetterJobResult",
    serializers=[DeadLetterJobShape, PurgeApprovalShape],
    resource_type_field_name=None,
)


class ListedDeadLetterJobShape(DeadLetterJobShape):
    def to_representation(self, job: Job) -> dict[str, Any]:
        return replay_resource(job, self.context["now"])


class ReplayList(DeadLetterIdView, ListView[Job]):
    """List the bulk jobs over dead letters, newest first."""

    queryset = ROWS
    serializer_class = ListedDeadLetterJobShape
    filters = ReplayFilters
    ordering = "-id"

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "now": db_now()}

    def apply_filters(self, rows: QuerySet[Job], filters: dict[str, Any]) -> QuerySet[Job]:
        columns = {
            "server": "replay__stream__server",
            "stream": "replay__stream__name",
            "action": "replay__action",
        }
        if filters.get("state") == LIVE:
            rows = rows.filter(finished_at=None)
        elif "state" in filters:
            rows = rows.filter(state=filters["state"])
        return rows.filter(**{columns[name]: filters[name] for name in columns if name in filters})

    def plan(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> dict[str, Any] | None:
        """For a dry run, return the numbers of letters that the job would process; otherwise None.

        Counting takes seconds, so it runs outside of the transaction.
        """
        if not body.get("dry_run"):
            return None
        actor.require(WRITE)
        stream, arguments = self._parse_body(body, now)
        action = arguments["action"]
        most_retries = arguments.get("most_retries", replays.MAX_RETRIES)
        rate = arguments.get("rate_per_second", replays.RATE_PER_SECOND)
        replays.validate_limits(stream, action, rate, most_retries)
        settlement.require_authority(actor, action, stream)
        chosen, edit = arguments["chosen"], arguments.get("edit")
        counts = eligibility.count_eligible(stream, chosen, action, most_retries, now, edit=edit)
        if edit is None:
            return vars(counts)
        return {**vars(counts), "preview": edit_preview.list_resources(stream, chosen, edit)}

    @extend_schema(
        operation_id="dlq_jobs_ask",
        parameters=[SERVER],
        request=DeadLetterJobBody,
        responses={202: JOB_OR_APPROVAL, 200: DeadLetterJobPlanShape},
    )
    @mutation(DeadLetterJobBody, first=plan)
    def post(
        self,
        *,
        body: dict[str, Any],
        actor: Actor,
        now: datetime,
        prepared: dict[str, Any] | None,
    ) -> Done:
        """Start a bulk job that retries or discards all matching letters at a limited rate.

        A purge has to be approved by a second person. Letters that arrive after the request are not
        affected. A dry run only counts the matching letters.
        """
        if prepared is not None:
            return Done(prepared)
        stream, arguments = self._parse_body(body, now)
        result = replays.request_replay(
            stream=stream, reason=body.get("reason", ""), actor=actor, now=now, **arguments
        )
        if isinstance(result, Approval):
            return Done({"approval": ApprovalShape.render(result)}, status=202)
        return Done(replay_resource(result, now), status=202)

    def _parse_body(
        self, body: dict[str, Any], now: datetime
    ) -> tuple[LetterStream, dict[str, Any]]:
        """Return the stream and the keyword arguments for :func:`replays.request_replay`."""
        parameter = ServerFilter.parse(self.request.query_params)["server"]
        server = body.get("server", parameter)
        if server != parameter and "server" in self.request.query_params:
            raise InvalidInput({"server": ["The server in the URL differs from that in the body."]})
        names = ("action", "rate_per_second", "most_retries", "waits_for")
        arguments = {name: body[name] for name in names if name in body}
        arguments["chosen"] = _parse_filter(body.get("filter", {}))
        if "edit" in body:
            arguments["edit"] = _parse_edit(body["edit"])
        return find_letter_stream(server, body["stream"], now), arguments


def _parse_filter(given: Any) -> LetterFilter:
    """Parse a letter filter; reject empty values, which would select every letter by mistake."""
    if not isinstance(given, dict):
        raise InvalidInput({"filter": ["Must be an object."]})
    empty = [
        name
        for name, value in given.items()
        if value is None or (value == "" and (name != "value" or not given.get("field")))
    ]
    if empty:
        raise InvalidInput({f"filter.{name}": [EMPTY] for name in empty})
    try:
        chosen = LetterFilter.from_mapping(given)
    except InvalidInput as error:
        problems = {f"filter.{name}": texts for name, texts in error.errors.items()}
        raise InvalidInput(problems) from error
    if given and chosen.is_everything:
        raise InvalidInput({"filter": [EMPTY]})
    return chosen


def _parse_edit(given: Any) -> FieldEdit:
    if not isinstance(given, dict):
        raise InvalidInput({"edit": ["Must be an object."]})
    try:
        return FieldEdit.from_mapping(given)
    except InvalidInput as error:
        problems = {f"edit.{name}": texts for name, texts in error.errors.items()}
        raise InvalidInput(problems) from error


class ReplayView(DeadLetterIdView):
    @extend_schema(operation_id="dlq_job", responses=DeadLetterJobShape)
    def get(self, _request: Request, job_id: int) -> Response:
        """Return one bulk job with its progress, rate, errors and hold reason."""
        return Response(replay_resource(_find_job(job_id), db_now()))


def build_intervention(verb: str, description: str) -> type[DeadLetterIdView]:
    """Return the endpoint that applies `verb` to a bulk job: pause, resume or cancel."""

    class InterventionView(DeadLetterIdView):
        @extend_schema(
            operation_id=f"dlq_job_{verb}",
            description=description,
            request=DeadLetterJobActionBody,
            responses=DeadLetterJobShape,
        )
        @mutation(DeadLetterJobActionBody)
        def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, job_id: int) -> Done:
            _find_job(job_id)
            given = body.get("reason", "").strip()
            reason = given or f"Asked to {verb} over the API without a reason."
            control.intervene(job_id=job_id, verb=verb, reason=reason, actor=actor, now=now)
            return Done(replay_resource(_find_job(job_id), now))

    return InterventionView


INTERVENTIONS = {
    "pause": "Pause the job until it is resumed.",
    "resume": "Resume a paused job at its last checkpoint.",
    "cancel": "Cancel the job permanently.\n\nLetters removed so far stay removed, and are in the "
    "archive.",
}


def _find_job(job_id: int) -> Job:
    job = ROWS.filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no bulk job {job_id}.")
    return job
