"""REST API of actions on one switch; each view calls one service in one transaction."""

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
    AcknowledgeBody,
    EngageBody,
    ExtendBody,
    ReconfirmBody,
    ReleaseBody,
    UndoBody,
)
from switches.api.shapes import ONE_SWITCH, ActedShape, PendingShape
from switches.confirmation import require_confirmation
from switches.expiry import PERMANENT
from switches.ramps import resources as ramps
from switches.services import Engagement, Release

from .switches import present_effect, resource


class ActionView(ApiView):
    path_parameters = ONE_SWITCH
    write_scope = "switches:write"


class EngageView(ActionView):
    @extend_schema(request=EngageBody, responses=ActedShape)
    @mutation(EngageBody)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, scope: str, key: str
    ) -> Done:
        """Engage the switch, which blocks its traffic.

        `permanent` engages for 24 hours and requests approval.
        """
        require_confirmation(self.request, scope, now)
        return _engaged(
            services.engage(scope=scope, key=key, actor=actor, now=now, **body), scope, key, now
        )


class ExtendView(ActionView):
    @extend_schema(request=ExtendBody, responses=ActedShape)
    @mutation(ExtendBody)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, scope: str, key: str
    ) -> Done:
        """Extend the engagement, counted from now. `permanent` requests approval."""
        if body.get("expires_in") == PERMANENT:
            require_confirmation(self.request, scope, now)
        return _engaged(
            services.extend(scope=scope, key=key, actor=actor, now=now, **body), scope, key, now
        )


class AcknowledgeEpisodeView(ActionView):
    @extend_schema(request=AcknowledgeBody, responses=ActedShape)
    @mutation(AcknowledgeBody)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, scope: str, key: str
    ) -> Done:
        """Acknowledge that the switch is engaged or overdue."""
        done = services.acknowledge(scope=scope, key=key, actor=actor, now=now, **body)
        known = {"acknowledged_at": timestamp(now), "acknowledged_by": done.episode.acknowledged_by}
        return Done({**resource(scope, key, now), **known})


class ReconfirmView(ActionView):
    @extend_schema(request=ReconfirmBody, responses=ActedShape)
    @mutation(ReconfirmBody)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, scope: str, key: str
    ) -> Done:
        """Re-confirm a permanent episode for another week. Requires a person, not a token."""
        services.reconfirm(scope=scope, key=key, actor=actor, now=now, **body)
        return Done(resource(scope, key, now))


class ReleaseView(ActionView):
    @extend_schema(request=ReleaseBody, responses={200: ActedShape, 202: PendingShape})
    @mutation(ReleaseBody)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, scope: str, key: str
    ) -> Done:
        """Release the switch by a ramp, or immediately.

        The global switch, and an immediate release of a segment or a protected switch, wait
        for a second person. Any other immediate release requires an approver.
        """
        require_confirmation(self.request, scope, now)
        done = services.release(scope=scope, key=key, actor=actor, now=now, **body)
        if done.ramp is not None:
            return _ramping(done, scope, key, now)
        shown = resource(scope, key, now)
        if done.approval is not None:
            waits = {"approval": ApprovalShape.render(done.approval)}
            return Done(waits, status=202, dry_run_data={**shown, **waits})
        return _published({**shown, **_review(done)}, scope, key, now)


class UndoView(ActionView):
    @extend_schema(request=UndoBody, responses=ActedShape)
    @mutation(UndoBody)
    def post(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, scope: str, key: str
    ) -> Done:
        """Undo your own engage within 30 seconds, if nothing changed since."""
        services.undo(scope=scope, key=key, actor=actor, now=now)
        return _published(resource(scope, key, now), scope, key, now)


def _engaged(done: Engagement, scope: str, key: str, now: datetime) -> Done:
    shown = resource(scope, key, now)
    if done.approval is not None:
        shown["approval"] = ApprovalShape.render(done.approval)
    if done.notice:
        shown["notice"] = done.notice
    if done.review is not None:
        shown["broke_glass"] = done.episode.broke_glass
        shown["review"] = ApprovalShape.render(done.review)
    return _published(shown, scope, key, now)


def _ramping(done: Release, scope: str, key: str, now: datetime) -> Done:
    """Return the response for a started ramp; a dry run includes the predicted switch."""
    assert done.ramp is not None  # noqa: S101 - asked before
    ramp = ramps.get_ramp_resource(done.ramp.pk, now)
    begun = {"ramp": ramp, **_review(done)}
    would_be = {**resource(scope, key, now), **begun, "ramp": {**ramp, "id": None}}
    still = partial(present_effect, scope, key, now)
    return Done(begun, status=202, dry_run_data=would_be, actual=still)


def _review(done: Release) -> dict[str, Any]:
    return {"review": ApprovalShape.render(done.review)} if done.review is not None else {}


def _published(shown: dict[str, Any], scope: str, key: str, now: datetime) -> Done:
    """Return a response whose dry run shows the present effect, as its version is unpublished."""
    return Done(shown, actual=partial(present_effect, scope, key, now))
