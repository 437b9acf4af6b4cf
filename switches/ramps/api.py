"""REST API of ramps: list, detail, advance, pause, resume and abort."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import NotFound
from controlplane.core.http.fields import EmptyBody, Filters, StrictIntegerField, Text
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from switches.confirmation import require_confirmation
from switches.models import Ramp
from switches.ramps import actions, live_ramps, resources
from switches.ramps.resources import ROWS, STATES, RampActionShape, RampShape

LIVE = "live"
ONE_RAMP = (OpenApiParameter("ramp_id", int, OpenApiParameter.PATH),)
JOB_STATE = {name: state for state, name in live_ramps.STATES.items()}


class RampFilters(Filters):
    state = serializers.ChoiceField(
        [LIVE, *STATES], required=False, help_text="`live` selects ramps that have not ended."
    )
    switch = serializers.CharField(required=False, max_length=131)


class RampActionBody(EmptyBody):
    reason = Text(help_text="Reason, stored in the audit trail.")


class AdvanceBody(RampActionBody):
    step_index = StrictIntegerField(
        min_value=0,
        required=False,
        help_text="Index of the step to leave, from 0. The response is 409 if the ramp is at "
        "another step. Send it, so that two simultaneous requests advance one step only.",
    )


class RampList(ListView[Ramp]):
    """Ramps, newest first."""

    queryset = ROWS
    serializer_class = RampShape  # type: ignore[assignment]  # renders ramps with related rows
    filters = RampFilters
    ordering = "-job"
    read_scope = "switches:read"

    def apply_filters(self, rows: QuerySet[Ramp], filters: dict[str, Any]) -> QuerySet[Ramp]:
        if "switch" in filters:
            rows = rows.filter(switch_id=filters["switch"])
        state = filters.get("state")
        if state == LIVE:
            return rows.filter(live=True)
        return rows.filter(job__state=JOB_STATE[state]) if state else rows

    def paginate_queryset(self, queryset: Any) -> Any:
        return resources.add_related(super().paginate_queryset(queryset) or (), db_now())


class RampDetail(ApiView):
    path_parameters = ONE_RAMP
    read_scope = "switches:read"

    @extend_schema(responses=RampShape)
    def get(self, _request: Request, ramp_id: int) -> Response:
        """Return one ramp."""
        if not Ramp.objects.filter(pk=ramp_id).exists():
            raise NotFound(f"There is no ramp {ramp_id}.")
        return Response(resources.get_ramp_resource(ramp_id, db_now()))


class RampAction(ApiView):
    path_parameters = ONE_RAMP
    write_scope = "ramps:write"


class RampAdvanceView(RampAction):
    def step(self, *, body: dict[str, Any], ramp_id: int, **_: Any) -> int | None:
        """Return the index of the step to leave: from the body, else the current one.

        It is read before the transaction, because a retry must not leave a later step.
        """
        named: int | None = body.get("step_index")
        return actions.find_step(ramp_id) if named is None else named

    @extend_schema(operation_id="ramps_advance", request=AdvanceBody, responses=RampActionShape)
    @mutation(AdvanceBody, first=step)
    def post(
        self,
        *,
        body: dict[str, Any],
        actor: Actor,
        now: datetime,
        ramp_id: int,
        prepared: int | None,
    ) -> Done:
        """Advance to the next step now, ending the dwell early.

        Requires the role approver. Requires a signed-in person other than the requester if
        a manual gate is waiting, or if too much traffic would flow early on a switch that
        needs two people.
        """
        ramp = Ramp.objects.select_related("switch").filter(pk=ramp_id).first()
        if ramp is not None:
            require_confirmation(self.request, ramp.switch.scope, now)
        return _execute(actions.advance, {**body, "step_index": prepared}, actor, now, ramp_id)


class RampPauseView(RampAction):
    @extend_schema(operation_id="ramps_pause", request=RampActionBody, responses=RampActionShape)
    @mutation(RampActionBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, ramp_id: int) -> Done:
        """Pause the ramp at its current share. A gate that fails still ends the ramp."""
        return _execute(actions.pause, body, actor, now, ramp_id)


class RampResumeView(RampAction):
    @extend_schema(operation_id="ramps_resume", request=RampActionBody, responses=RampActionShape)
    @mutation(RampActionBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, ramp_id: int) -> Done:
        """Resume the ramp with the dwell that was left when it was paused."""
        return _execute(actions.resume, body, actor, now, ramp_id)


class RampAbortView(RampAction):
    @extend_schema(operation_id="ramps_abort", request=RampActionBody, responses=RampActionShape)
    @mutation(RampActionBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, ramp_id: int) -> Done:
        """Abort the ramp and engage the switch again."""
        return _execute(actions.abort, body, actor, now, ramp_id)


def _execute(
    act: Callable[..., Ramp], body: dict[str, Any], actor: Actor, now: datetime, ramp_id: int
) -> Done:
    act(ramp_id=ramp_id, actor=actor, now=now, **body)
    return Done(resources.get_ramp_resource(ramp_id, now))
