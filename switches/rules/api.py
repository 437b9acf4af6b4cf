"""REST API of safety rules; every change waits for a second person."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.approvals.api import ApprovalShape
from controlplane.core.errors import NotFound
from controlplane.core.http.fields import EmptyBody, StrictIntegerField, Text
from controlplane.core.http.resources import Resource, TimestampField
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from switches.models import Rule
from switches.rules import evaluation, queries, services
from switches.rules.proposal import FIELDS
from switches.rules.queries import SafetyRuleStatus


class RuleListShape(serializers.ListSerializer[SafetyRuleStatus]):
    """A list of rules with their statuses, which are read for all rules at once."""

    def to_representation(self, data: Any) -> Any:
        return super().to_representation(queries.read_statuses(list(data)))


class RuleShape(Resource[SafetyRuleStatus]):
    id = serializers.IntegerField(source="row.pk")
    name = serializers.CharField(source="row.name")
    kind = serializers.ChoiceField(evaluation.KINDS, source="row.kind")
    switches = serializers.ListField(source="row.switches", child=serializers.CharField())
    n = serializers.IntegerField(source="row.n", allow_null=True)
    sentence = serializers.CharField(help_text="Description of the rule.")
    engaged = serializers.ListField(
        child=serializers.CharField(),
        help_text="First 50 engaged or ramping switches of the rule's group.",
    )
    engaged_total = serializers.IntegerField(
        help_text="Number of engaged or ramping switches of the group."
    )
    violated = serializers.BooleanField(source="is_violated")
    violation = serializers.CharField(help_text="How the rule is violated now, or empty.")
    at_limit = serializers.BooleanField(source="at_its_limit")
    created_at = TimestampField(source="row.created_at")
    created_by = serializers.CharField(source="row.created_by")
    changed_at = TimestampField(source="row.changed_at")

    class Meta:
        list_serializer_class = RuleListShape


class RuleProposalShape(serializers.Serializer[Any]):
    """A proposed change of a safety rule, which waits for a second person."""

    approval = ApprovalShape(required=False, help_text="Request that waits for a second person.")
    outlook = serializers.DictField(
        required=False,
        help_text="Dry run only: present violations and changes that the rule would refuse.",
    )


class RuleBody(EmptyBody):
    response_shape = RuleShape

    name = Text(help_text="Name shown in refusals; at most 80 characters.")
    kind = Text(help_text=f"One of {', '.join(evaluation.KINDS)}.")
    switches = serializers.ListField(
        child=Text(), help_text="`segment:finance`, `segment:*`, `feature:checkout-*`, `*`."
    )
    n = StrictIntegerField(
        required=False,
        help_text="For `at_most` only.",
        error_messages={"invalid": "Must be a whole number, without quotes."},
    )
    reason = Text(required=False)


class RemoveRuleBody(EmptyBody):
    reason = Text(required=False)


class RuleList(ListView[Rule]):
    """The safety rules, oldest first."""

    queryset = Rule.objects.all()
    serializer_class = RuleShape  # type: ignore[assignment]  # renders statuses of rules
    ordering = "id"
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(request=RuleBody, responses={202: RuleProposalShape})
    @mutation(RuleBody)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Propose a safety rule. Requires an admin; another approver decides."""
        return _propose(body, None, actor, now)


class RuleDetail(ApiView):
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(responses=RuleShape)
    def get(self, request: Request, rule_id: int) -> Response:
        """Return one rule with its status."""
        row = Rule.objects.filter(pk=rule_id).first()
        if row is None:
            raise NotFound(f"There is no rule {rule_id}.")
        (status,) = queries.read_statuses([row])
        return Response(RuleShape.render(status))

    @extend_schema(request=RuleBody, responses={202: RuleProposalShape})
    @mutation(RuleBody)
    def put(self, *, body: dict[str, Any], actor: Actor, now: datetime, rule_id: int) -> Done:
        """Propose a change of the safety rule. Requires an admin; another approver decides."""
        return _propose(body, rule_id, actor, now)

    @extend_schema(request=RemoveRuleBody, responses={202: RuleProposalShape})
    @mutation(RemoveRuleBody)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime, rule_id: int) -> Done:
        """Propose the removal of the safety rule. Requires an admin; another approver decides."""
        return _propose(body, rule_id, actor, now, removes=True)


def _propose(
    body: dict[str, Any], rule_id: int | None, actor: Actor, now: datetime, *, removes: bool = False
) -> Done:
    proposed = services.propose_rule(
        rule_id=rule_id,
        fields=None if removes else {field: body.get(field) for field in FIELDS},
        reason=body.get("reason", ""),
        actor=actor,
        now=now,
    )
    pending = {"approval": ApprovalShape.render(proposed.approval)}
    outlook = {"outlook": queries.preview_now(proposed.after).as_dict()} if proposed.after else {}
    return Done(pending, status=202, dry_run_data={**pending, **outlook})
