"""Approvals over HTTP: list, show, edit, approve, deny, sign."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.approvals import reviews, services
from controlplane.core.approvals.models import Approval
from controlplane.core.approvals.risk import Risk
from controlplane.core.canonical import timestamp
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import Filters, MutationBody, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.views import ApiView, Done, ListView, mutation

RISKS = tuple(risk.value for risk in Risk)


class ApprovalShape(serializers.Serializer[Approval]):
    id = serializers.IntegerField()
    kind = serializers.ChoiceField(Approval.Kind.values)
    target = serializers.CharField()
    summary = serializers.CharField()
    diff = serializers.DictField()
    reason = serializers.CharField()
    requested_by = serializers.CharField()
    requested_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    state = serializers.ChoiceField(Approval.State.values)
    decided_by = serializers.CharField(allow_null=True)
    decided_at = serializers.DateTimeField(allow_null=True)
    comment = serializers.CharField()
    risk = serializers.ChoiceField(RISKS)
    replaces = serializers.IntegerField(allow_null=True)

    def to_representation(self, approval: Approval) -> dict[str, Any]:
        return approval_resource(approval)


def approval_resource(approval: Approval) -> dict[str, Any]:
    """Return the representation of an approval."""
    return {
        "id": approval.pk,
        "kind": approval.kind,
        "target": approval.target,
        "summary": approval.summary,
        "diff": approval.diff,
        "reason": approval.reason,
        "requested_by": approval.requested_by,
        "requested_at": timestamp(approval.requested_at),
        "expires_at": timestamp(approval.expires_at) if approval.expires_at else None,
        "state": approval.state,
        "decided_by": approval.decided_by or None,
        "decided_at": timestamp(approval.decided_at) if approval.decided_at else None,
        "comment": approval.comment,
        "risk": approval.risk,
        "replaces": approval.replaces_id,
    }


class ApprovalFilters(Filters):
    state = serializers.ChoiceField(Approval.State.values, required=False)
    kind = serializers.ChoiceField(Approval.Kind.values, required=False)


class DecisionBody(MutationBody):
    comment = Text(required=False, max_length=2000)


class EditBody(MutationBody):
    reason = Text(max_length=services.MAX_REASON_LENGTH)


class ApprovalList(ListView[Approval]):
    """Requests and reviews, newest first."""

    queryset = Approval.objects.all()
    serializer_class = ApprovalShape
    filters = ApprovalFilters
    ordering = "-id"
    read_scope = "switches:read"

    def chosen(self, rows: QuerySet[Approval], filters: dict[str, Any]) -> QuerySet[Approval]:
        return rows.filter(**filters)


class ApprovalView(ApiView):
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(responses=ApprovalShape)
    def get(self, _request: Request, approval_id: int) -> Response:
        """Return one request."""
        return Response(approval_resource(services.find(approval_id)))

    @extend_schema(request=EditBody, responses=ApprovalShape)
    @mutation(EditBody)
    def patch(self, *, body: dict[str, Any], actor: Actor, now: datetime, approval_id: int) -> Done:
        """Edit one's own request, which is voided; the answer is the request that replaces it."""
        approval = services.edit(
            approval_id=approval_id, reason=body["reason"], actor=actor, now=now
        )
        return Done(approval_resource(approval))


class ApproveView(ApiView):
    write_scope = "switches:write"

    @extend_schema(request=DecisionBody, responses=ApprovalShape, auth=BY_SESSION)
    @mutation(DecisionBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, approval_id: int) -> Done:
        """Approve and carry out at once. A signed-in approver, never the requester."""
        if services.reaches_far(services.find(approval_id)):
            require_fresh(self.request, now)
        comment = body.get("comment", "")
        approval = services.approve(approval_id=approval_id, comment=comment, actor=actor, now=now)
        return Done(approval_resource(approval))


class DenyView(ApiView):
    write_scope = "switches:write"

    @extend_schema(request=DecisionBody, responses=ApprovalShape, auth=BY_SESSION)
    @mutation(DecisionBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, approval_id: int) -> Done:
        """Deny. An approver, or the requester to withdraw it."""
        comment = body.get("comment", "")
        approval = services.deny(approval_id=approval_id, comment=comment, actor=actor, now=now)
        return Done(approval_resource(approval))


class SignReviewView(ApiView):
    write_scope = "switches:write"

    @extend_schema(request=DecisionBody, responses=ApprovalShape, auth=BY_SESSION)
    @mutation(DecisionBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, review_id: int) -> Done:
        """Sign a break-glass review. A signed-in approver, never who broke the glass."""
        comment = body.get("comment", "")
        review = reviews.sign(review_id=review_id, comment=comment, actor=actor, now=now)
        return Done(approval_resource(review))
