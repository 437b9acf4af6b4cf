"""Approval API: list, show, edit, approve, deny, sign."""

from collections.abc import Callable
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
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import EmptyBody, Filters, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.resources import OptionalTextField, Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation


class ApprovalShape(Resource[Approval]):
    id = serializers.IntegerField()
    kind = serializers.ChoiceField(Approval.Kind.values)
    target = serializers.CharField()
    summary = serializers.CharField()
    diff = serializers.DictField()
    reason = serializers.CharField()
    requested_by = serializers.CharField()
    requested_at = TimestampField()
    expires_at = TimestampField(allow_null=True)
    state = serializers.ChoiceField(Approval.State.values)
    decided_by = OptionalTextField()
    decided_at = TimestampField(allow_null=True)
    comment = serializers.CharField()
    risk = serializers.ChoiceField(tuple(risk.value for risk in Risk))
    replaces = serializers.IntegerField(source="replaces_id", allow_null=True)


class ApprovalFilters(Filters):
    state = serializers.ChoiceField(Approval.State.values, required=False)
    kind = serializers.ChoiceField(Approval.Kind.values, required=False)


class DecisionBody(EmptyBody):
    comment = Text(required=False, max_length=2000)


class EditApprovalBody(EmptyBody):
    reason = Text(max_length=services.MAX_REASON_LENGTH)


class ApprovalList(ListView[Approval]):
    """Approval requests and break-glass reviews, newest first."""

    queryset = Approval.objects.all()
    serializer_class = ApprovalShape
    filters = ApprovalFilters
    ordering = "-id"
    read_scope = "switches:read"

    def apply_filters(
        self, rows: QuerySet[Approval], filters: dict[str, Any]
    ) -> QuerySet[Approval]:
        return rows.filter(**filters)


class ApprovalView(ApiView):
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(responses=ApprovalShape)
    def get(self, _request: Request, approval_id: int) -> Response:
        """Return one approval request or review."""
        return Response(ApprovalShape.render(services.get_approval(approval_id)))

    @extend_schema(request=EditApprovalBody, responses=ApprovalShape)
    @mutation(EditApprovalBody)
    def patch(self, *, body: dict[str, Any], actor: Actor, now: datetime, approval_id: int) -> Done:
        """Replace your own request by a copy with another reason; return the new request."""
        approval = services.edit_request(
            approval_id=approval_id, reason=body["reason"], actor=actor, now=now
        )
        return Done(ApprovalShape.render(approval))


def build_decision_view(
    decide: Callable[..., Approval], description: str, *, confirm: bool = False
) -> type[ApiView]:
    """Return an API view for one decision, such as denying: a POST calls `decide` for a request.

    With `confirm`, the person must have confirmed their identity recently if the approval request
    requires that.
    """

    class DecisionView(ApiView):
        write_scope = "switches:write"

        @extend_schema(
            description=description, request=DecisionBody, responses=ApprovalShape, auth=BY_SESSION
        )
        @mutation(DecisionBody)
        def post(self, *, body: dict[str, Any], actor: Actor, now: datetime, **path: int) -> Done:
            if confirm and services.requires_confirmation(services.get_approval(**path)):
                require_fresh(self.request, now)
            decided = decide(comment=body.get("comment", ""), actor=actor, now=now, **path)
            return Done(ApprovalShape.render(decided))

    return DecisionView


ApproveView = build_decision_view(
    services.approve,
    "Approve a request and carry it out immediately; requires a second, signed-in approver.",
    confirm=True,
)
DenyView = build_decision_view(
    services.deny, "Deny a request as an approver, or withdraw it as its requester."
)
SignReviewView = build_decision_view(
    reviews.sign, "Sign a break-glass review; requires a second, signed-in approver."
)
