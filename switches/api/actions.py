"""REST API of actions on one switch; each view calls one function of :mod:`switches.services`."""

from datetime import datetime
from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema

from controlplane.core.actors import Actor
from controlplane.core.approvals.api import ApprovalShape
from controlplane.core.canonical import timestamp
from controlplane.core.http.views import ApiView, Done, mutation
from switches import services
from switches.api.bodies import (
    AcknowledgeSwitchBody,
    EngageBody,
    ExtendBody,
    ReconfirmBody,
    ReleaseBody,
    UndoBody,
)
from switches.api.shapes import ONE_SWITCH, PendingReleaseShape, SwitchActionShape
from switches.confirmation import require_confirmation
from switches.expiry import PERMANENT
from switches.ramps import resources as ramps
from switches.services import Engagement

from .switches import read_switch_resource

Switch = dict[str, Any]
"""Path parameters that identify a switch: `scope` and `key`."""


class ActionView(ApiView):
    path_parameters = ONE_SWITCH
    write_scope = "switches:write"


class EngageView(ActionView):
    @extend_schema(request=EngageBody, responses=SwitchActionShape)
    @mutation(EngageBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, **switch: Any) -> Done:
        """Engage the switch, which blocks its traffic.

        The duration `permanent` engages for 24 hours and requests an approval.
        """
        require_confirmation(self.request, switch["scope"], now)
        engaged = services.engage(**switch, actor=actor, now=now, **body)
        return _respond_engaged(engaged, switch)


class ExtendView(ActionView):
    @extend_schema(request=ExtendBody, responses=SwitchActionShape)
    @mutation(ExtendBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, **switch: Any) -> Done:
        """Extend the engagement; the duration counts from now.

        The duration `permanent` requests an approval instead.
        """
        if body.get("expires_in") == PERMANENT:
            require_confirmation(self.request, switch["scope"], now)
        extended = services.extend(**switch, actor=actor, now=now, **body)
        return _respond_engaged(extended, switch)


class AcknowledgeEpisodeView(ActionView):
    @extend_schema(request=AcknowledgeSwitchBody, responses=SwitchActionShape)
    @mutation(AcknowledgeSwitchBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, **switch: Any) -> Done:
        """Acknowledge that the switch is engaged or overdue; pauses its escalation for 24 h."""
        done = services.acknowledge(**switch, actor=actor, now=now, **body)
        shown = {**read_switch_resource(**switch), "acknowledged_at": timestamp(now)}
        return Done({**shown, "acknowledged_by": done.episode.acknowledged_by})


class ReconfirmView(ActionView):
    @extend_schema(request=ReconfirmBody, responses=SwitchActionShape)
    @mutation(ReconfirmBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, **switch: Any) -> Done:
        """Re-confirm a permanent episode for another week. Requires a person, not a token."""
        services.reconfirm(**switch, actor=actor, now=now, **body)
        return Done(read_switch_resource(**switch))


class ReleaseView(ActionView):
    @extend_schema(
        request=ReleaseBody, responses={200: SwitchActionShape, 202: PendingReleaseShape}
    )
    @mutation(ReleaseBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, **switch: Any) -> Done:
        """Release the switch by a ramp, or immediately.

        Every release of the global switch, and an immediate release of a segment or a protected
        switch, waits for a second person. Any other immediate release requires an approver.
        """
        require_confirmation(self.request, switch["scope"], now)
        done = services.release(**switch, actor=actor, now=now, **body)
        shown = read_switch_resource(**switch)
        if done.approval is not None:
            waits = {"approval": ApprovalShape.render(done.approval)}
            return Done(waits, status=202, dry_run_data={**shown, **waits})
        review = {"review": ApprovalShape.render(done.review)} if done.review else {}
        if done.ramp is None:
            return _respond_with_effect({**shown, **review}, switch)
        ramp = ramps.get_ramp_resource(done.ramp.pk, now)
        would_be = {**shown, **review, "ramp": {**ramp, "id": None}}
        present = partial(_read_effect, **switch)
        return Done({"ramp": ramp, **review}, status=202, dry_run_data=would_be, actual=present)


class UndoView(ActionView):
    @extend_schema(request=UndoBody, responses=SwitchActionShape)
    @mutation(UndoBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, **switch: Any) -> Done:
        """Undo your own engagement within 30 seconds, if nothing changed since."""
        services.undo(**switch, actor=actor, now=now)
        return _respond_with_effect(read_switch_resource(**switch), switch)


def _respond_engaged(done: Engagement, switch: Switch) -> Done:
    shown = read_switch_resource(**switch)
    if done.approval is not None:
        shown["approval"] = ApprovalShape.render(done.approval)
    if done.notice:
        shown["notice"] = done.notice
    if done.review is not None:
        shown["broke_glass"] = done.episode.broke_glass
        shown["review"] = ApprovalShape.render(done.review)
    return _respond_with_effect(shown, switch)


def _respond_with_effect(shown: dict[str, Any], switch: Switch) -> Done:
    return Done(shown, actual=partial(_read_effect, **switch))


def _read_effect(scope: str, key: str) -> dict[str, Any]:
    return {"effect": read_switch_resource(scope, key)["effect"]}
