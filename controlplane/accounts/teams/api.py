"""API of teams, of the rules of authority, and of decisions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.accounts.models.teams import Membership, Team
from controlplane.core import authority
from controlplane.core.actions import Action, Relation
from controlplane.core.actors import Actor
from controlplane.core.approvals.api import ApprovalShape
from controlplane.core.approvals.models import Approval
from controlplane.core.errors import InvalidInput, NotFound
from controlplane.core.http.confirmation import require_fresh
from controlplane.core.http.fields import EmptyBody, Filters, Text
from controlplane.core.http.openapi import BY_SESSION
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ApiView, Done, ListView, mutation
from controlplane.core.roles import Role

from . import changes, queries, rules, services
from .documents import Document, read_documents
from .services import TeamChange

ACTIONS = [one.value for one in Action]
REASON_HELP = "Reason for the approver; required for changes of who may do what."
WAITS_HELP = "The request that waits for a second person; null if there is none."
ALL_KINDS = "all"
"""The kind, in addresses, of a rule for all kinds of resources without their own."""


class MemberShape(serializers.Serializer[Any]):
    username = serializers.CharField()
    role = serializers.ChoiceField(Membership.TeamRole.values)

    def get_fields(self) -> dict[str, Any]:
        by = "`group`: by a group of the identity provider."
        source = serializers.ChoiceField(Membership.Source.values, help_text=by)
        return {**super().get_fields(), "source": source}


class TeamRows(serializers.ListSerializer[Any]):
    """Serializer of a page of teams, with few queries."""

    def to_representation(self, data: Any) -> list[dict[str, Any]]:
        return render_teams([team.slug for team in data])


class TeamShape(serializers.Serializer[Team]):
    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    runbook_url = serializers.CharField()
    member_group = serializers.CharField(help_text="Group of the identity provider, or empty.")
    lead_group = serializers.CharField(help_text="Group of the identity provider, or empty.")
    members = MemberShape(many=True)
    owns = serializers.ListField(
        child=serializers.CharField(), help_text="Patterns: `segment:finance*`, `service:core`."
    )
    revision = serializers.CharField(help_text="For `revision` of a change.")
    pending = serializers.ListField(
        child=serializers.IntegerField(), help_text="Requests for approval that would change it."
    )

    class Meta:
        list_serializer_class = TeamRows

    def get_fields(self) -> dict[str, Any]:
        parent = serializers.CharField(allow_null=True, help_text="Slug; null for a root team.")
        return {**super().get_fields(), "parent": parent}


class TeamChangeShape(serializers.Serializer[Any]):
    team = TeamShape(allow_null=True, help_text="The team as it is now; null if there is none yet.")
    approval = ApprovalShape(allow_null=True, help_text=WAITS_HELP)


class _TeamBody(EmptyBody):
    description = Text(required=False)
    runbook_url = Text(required=False)
    member_group = Text(required=False)
    lead_group = Text(required=False)
    members = serializers.DictField(
        required=False,
        child=serializers.ChoiceField(Membership.TeamRole.values),
        help_text="All members by hand, by user name: `member` or `lead`.",
    )
    owns = serializers.ListField(required=False, child=Text(), help_text="All patterns.")
    reason = Text(required=False, help_text=REASON_HELP)

    def get_fields(self) -> dict[str, Any]:
        parent = Text(required=False, help_text="Slug; empty for a root team.")
        return {**super().get_fields(), "parent": parent}


class NewTeamBody(_TeamBody):
    slug = Text(help_text="Lower-case letters, digits and hyphens; it can't be changed.")
    name = Text()


class TeamBody(_TeamBody):
    name = Text(required=False)
    revision = Text(required=False, help_text="409 if the team has another revision now.")


class AuthorityReasonBody(EmptyBody):
    reason = Text(required=False, help_text=REASON_HELP)


class RequirementShape(serializers.Serializer[Any]):
    relation = serializers.ChoiceField(
        [one.value for one in Relation],
        help_text="`owner`: a member of the owning team or one above; `root`: of a root team.",
    )
    role = serializers.ChoiceField([one.value for one in Role], help_text="The least role.")


class AuthorityRuleShape(RequirementShape):
    action = serializers.ChoiceField(ACTIONS)
    kind = serializers.CharField(help_text="`all`: for all kinds without their own rule.")
    default = RequirementShape(
        allow_null=True, help_text="What holds without a change; null if the kind has no own rule."
    )
    changed = serializers.BooleanField()


class AuthorityRulesShape(serializers.Serializer[Any]):
    rules = AuthorityRuleShape(many=True)


class AuthorityRuleChangeShape(serializers.Serializer[Any]):
    approval = ApprovalShape(allow_null=True, help_text=WAITS_HELP)


class AuthorityRuleBody(AuthorityReasonBody):
    relation = Text(help_text=f"One of {', '.join(Relation)}.")
    role = Text(help_text=f"One of {', '.join(Role)}.")


class DecisionFilters(Filters):
    action = serializers.ChoiceField(ACTIONS)
    resource = serializers.CharField(max_length=300)


class DecisionShape(serializers.Serializer[Any]):
    action = serializers.ChoiceField(ACTIONS)
    resource = serializers.CharField()
    owner = serializers.CharField(allow_null=True, help_text="Slug of the owning team.")
    allowed = serializers.BooleanField(help_text="Whether the caller may do it now.")
    detail = serializers.CharField(help_text="Why not, or empty.")
    can_ask = serializers.BooleanField(help_text="Whether the caller may ask the owner.")
    who_may = serializers.ListField(
        child=serializers.CharField(), help_text="A few people who may."
    )


class TeamList(ListView[Team]):
    """All teams with their members and what they own."""

    queryset = Team.objects.all()
    serializer_class = TeamShape
    ordering = "id"
    read_scope = "switches:read"
    write_scope = "switches:write"

    @mutation(NewTeamBody, {202: TeamChangeShape}, auth=BY_SESSION)
    def post(self, *, body: dict[str, Any], actor: Actor, now: datetime) -> Done:
        """Request a new team; another approver decides.

        Admins create teams without a parent, leads also teams below their own.
        """
        require_fresh(self.request, now)
        slug, reason = body.pop("slug"), body.pop("reason", "")
        change = services.create_team(slug=slug, wanted=body, reason=reason, actor=actor, now=now)
        return _respond(change)


class TeamView(ApiView):
    read_scope = "switches:read"
    write_scope = "switches:write"

    @extend_schema(responses=TeamShape)
    def get(self, request: Request, slug: str) -> Response:
        """Return a team with its members and what it owns."""
        found = render_teams([slug])
        if not found:
            raise NotFound(f"There is no team {slug}.")
        return Response(found[0])

    @mutation(TeamBody, {200: TeamChangeShape, 202: TeamChangeShape}, auth=BY_SESSION)
    def patch(self, *, body: dict[str, Any], actor: Actor, now: datetime, slug: str) -> Done:
        """Change a team: admins any, leads and approvers of a team their own.

        Name, description and runbook change at once; another approver decides on the rest (202).
        """
        require_fresh(self.request, now)
        seen, reason = body.pop("revision", ""), body.pop("reason", "")
        change = services.change_team(
            slug=slug, wanted=body, seen=seen, reason=reason, actor=actor, now=now
        )
        return _respond(change)

    @mutation(AuthorityReasonBody, {202: TeamChangeShape}, auth=BY_SESSION)
    def delete(self, *, body: dict[str, Any], actor: Actor, now: datetime, slug: str) -> Done:
        """Request the deletion of a team; 409 while it has teams below it, or tokens."""
        require_fresh(self.request, now)
        reason = body.get("reason", "")
        return _respond(services.delete_team(slug=slug, reason=reason, actor=actor, now=now))


class AuthorityRuleList(ApiView):
    read_scope = "switches:read"

    @extend_schema(responses=AuthorityRulesShape)
    def get(self, request: Request) -> Response:
        """Return the rules of authority: who may do what."""
        return Response({"rules": [_render_rule(one) for one in rules.list_rules()]})


class AuthorityRuleView(ApiView):
    write_scope = "switches:write"

    @mutation(
        AuthorityRuleBody,
        {200: AuthorityRuleChangeShape, 202: AuthorityRuleChangeShape},
        auth=BY_SESSION,
    )
    def put(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, action: str, kind: str
    ) -> Done:
        """Request another rule for an action on a kind of resources, `all` for those without."""
        wanted = {name: body[name] for name in ("relation", "role")}
        return self._change(action, kind, wanted, body.get("reason", ""), actor, now)

    @mutation(
        AuthorityReasonBody,
        {200: AuthorityRuleChangeShape, 202: AuthorityRuleChangeShape},
        auth=BY_SESSION,
    )
    def delete(
        self, *, body: dict[str, Any], actor: Actor, now: datetime, action: str, kind: str
    ) -> Done:
        """Request the default rule for an action on a kind of resources."""
        return self._change(action, kind, None, body.get("reason", ""), actor, now)

    def _change(
        self,
        action: str,
        kind: str,
        wanted: dict[str, str] | None,
        reason: str,
        actor: Actor,
        now: datetime,
    ) -> Done:
        require_fresh(self.request, now)
        approval = rules.change_rule(
            action=action,
            kind="" if kind == ALL_KINDS else kind,
            wanted=wanted,
            reason=reason,
            actor=actor,
            now=now,
        )
        return Done(_render_approval(approval), status=202 if approval else 200)


class DecisionView(ApiView):
    read_scope = "switches:read"
    filters = DecisionFilters

    @extend_schema(
        parameters=[
            OpenApiParameter("action", str, required=True, enum=ACTIONS),
            OpenApiParameter("resource", str, required=True),
        ],
        responses=DecisionShape,
    )
    def get(self, request: Request) -> Response:
        """Return whether the caller may do an action on a resource, and who may."""
        wanted = DecisionFilters.parse(request.query_params)
        action, resource = Action(wanted["action"]), wanted["resource"]
        if ":" not in resource:
            raise InvalidInput({"resource": ["Use kind:name, such as segment:finance."]})
        decision = authority.decide(actor_of(request), action, resource)
        return Response(
            {
                "action": action,
                "resource": resource,
                "owner": decision.owner.slug if decision.owner else None,
                "allowed": decision.is_allowed,
                "detail": decision.detail,
                "can_ask": decision.can_ask,
                "who_may": authority.who_may(action, resource),
            }
        )


def render_teams(slugs: Sequence[str]) -> list[dict[str, Any]]:
    """Return the teams with these slugs as the API shows them, in this order."""
    documents = read_documents(Team.objects.filter(slug__in=slugs))
    pending = queries.list_pending() if documents else []
    return [_render_team(slug, documents[slug], pending) for slug in slugs if slug in documents]


def _render_team(slug: str, document: Document, pending: Sequence[Approval]) -> dict[str, Any]:
    return {
        "slug": slug,
        **document,
        "members": [
            {"username": username, **member} for username, member in document["members"].items()
        ],
        "revision": changes.get_revision(document),
        "pending": [one.pk for one in pending if services.get_slug(one) == slug],
    }


def _respond(change: TeamChange) -> Done:
    teams = render_teams([change.slug])
    shown = {"team": teams[0] if teams else None, **_render_approval(change.approval)}
    return Done(shown, status=202 if change.approval else 200)


def _render_approval(approval: Approval | None) -> dict[str, Any]:
    return {"approval": ApprovalShape.render(approval) if approval else None}


def _render_rule(row: rules.RuleRow) -> dict[str, Any]:
    default = row.default and {"relation": row.default.relation, "role": row.default.role}
    return {
        "action": row.action,
        "kind": row.kind or ALL_KINDS,
        "relation": row.rule.relation,
        "role": row.rule.role,
        "default": default,
        "changed": row.is_stored,
    }
