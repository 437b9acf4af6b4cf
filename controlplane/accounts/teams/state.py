"""The teams, what they own and the rules of authority, as read at one moment."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from controlplane.core.actions import DEFAULT_RULES, Action, Relation, Requirement
from controlplane.core.actors import Actor
from controlplane.core.authority import MINE, UNOWNED, AuthorityDecision, TeamFilter, TeamName
from controlplane.core.ownership import Owners, ResourcePattern, kind_of
from controlplane.core.roles import Role
from controlplane.core.scopes import global_switch_id

RANKS = {role: rank for rank, role in enumerate(Role)}
TEAM = "team"
PHRASES = {
    Action.ENGAGE: "stop it",
    Action.EXTEND: "extend it",
    Action.RELEASE: "release it",
    Action.RELEASE_AT_ONCE: "release it at once",
    Action.APPROVE: "approve its changes",
    Action.OVERRIDE: "override it",
    Action.REPLAY: "replay its messages",
    Action.PURGE: "discard its messages",
    Action.EDIT: "edit it",
}
"""Words for refusals: `Only its members may release it.`"""


@dataclass(frozen=True)
class Member:
    """An active person in teams: user name, role, and roles in teams by slug."""

    username: str
    role: Role
    teams: Mapping[str, str]


@dataclass
class TeamState:
    """Teams by slug with their parents, active members by user id, owned patterns and rules.

    It implements :class:`controlplane.core.authority.Teams`. `rules` holds only those that replace
    defaults.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[int, Member] = field(default_factory=dict)
    patterns: Sequence[tuple[str, str]] = ()
    rules: Mapping[tuple[Action, str], Requirement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._owners = Owners(self.patterns)
        self._teams = {slug: TeamName(slug, name) for slug, name in self.names.items()}

    def __bool__(self) -> bool:
        return bool(self.names)

    def requirement_for(self, action: Action, kind: str) -> Requirement:
        """Return the rule for an action on resources of a kind: the most specific stored one.

        A stored rule for all kinds doesn't replace the default of a kind that has its own.
        """
        for key in ((action, kind), (action, "")):
            for rules in (self.rules, DEFAULT_RULES):
                if key in rules:
                    return rules[key]
        raise KeyError(action)

    def slug_of_owner(self, resource: str) -> str:
        if kind_of(resource) == TEAM:
            slug = resource.partition(":")[2]
            return slug if slug in self.names else ""
        return self._owners.owner_of(resource)

    def owner_of(self, resource: str) -> TeamName | None:
        return self._teams.get(self.slug_of_owner(resource))

    def find_foreign_owner(self, actor: Actor, resource: str) -> TeamName | None:
        owner = self.owner_of(resource)
        return None if owner is None or owner.slug in self._covered_by(actor) else owner

    def slugs_up(self, slug: str) -> list[str]:
        """Return a team and its parents, up to the root."""
        found = []
        while slug and slug not in found:
            found.append(slug)
            slug = self.parents.get(slug, "")
        return found

    def chain_of(self, resource: str) -> list[TeamName]:
        return [self._teams[slug] for slug in self.slugs_up(self.slug_of_owner(resource))]

    def deciders_of(self, action: Action, resource: str) -> list[str]:
        rule = self.requirement_for(action, kind_of(resource))
        return self._accepted_teams(rule, resource) or []

    def roots(self) -> list[str]:
        return [slug for slug in self.names if not self.parents.get(slug)]

    def teams_of(self, user_id: int | None) -> Collection[str]:
        member = self.members.get(user_id or 0)
        return self._with_teams_below(member.teams if member else ())

    def filter_for(self, user_id: int | None, wanted: str) -> TeamFilter:
        if not self:
            return TeamFilter("", "All teams", lambda _resource: True)
        own = self.teams_of(user_id)
        choices = [("", "All teams")]
        if own:
            choices.append((MINE, "My teams"))
        choices += sorted(self.names.items(), key=lambda pair: pair[1].casefold())
        choices.append((UNOWNED, "Unowned"))
        labels = dict(choices)
        if not wanted or wanted not in labels:
            return TeamFilter("", labels[""], lambda _resource: True, choices, unknown=wanted)
        if wanted == UNOWNED:
            selected: Collection[str] = {""}
        else:
            selected = own if wanted == MINE else self._with_teams_below([wanted])

        @cache  # A report asks about each switch several times.
        def includes(resource: str) -> bool:
            return resource == global_switch_id() or self.slug_of_owner(resource) in selected

        return TeamFilter(wanted, labels[wanted], includes, choices)

    def decide(self, actor: Actor, action: Action, resource: str) -> AuthorityDecision:
        """Decide by the rules alone; :func:`controlplane.core.authority.decide` also by grants."""
        owner = self.owner_of(resource)
        if actor.type == "system":
            return AuthorityDecision(True, owner)
        if limit := self.find_limit(actor, resource):
            return AuthorityDecision(False, owner, limit)
        if action == Action.APPROVE and not actor.is_person:
            return AuthorityDecision(
                False, owner, "Only a signed-in person can approve; tokens can't."
            )
        rule = self.requirement_for(action, kind_of(resource))
        accepted = self._accepted_teams(rule, resource)
        mine = self._roles_in_teams(actor)
        is_related = accepted is None or not mine.keys().isdisjoint(accepted)
        is_lead = accepted is not None and any(mine.get(slug) == "lead" for slug in accepted)
        role = _strengthen(actor.role, is_lead)
        if action == Action.EDIT and actor.is_person and actor.role == Role.ADMIN:
            is_related = True
        if is_related and role is not None and RANKS[role] >= RANKS[rule.role]:
            return AuthorityDecision(True, owner)
        return self._refuse(actor, action, resource, rule, owner, is_related=is_related)

    def find_limit(self, actor: Actor, resource: str) -> str:
        if actor.patterns and not any(
            ResourcePattern(one).matches(resource) for one in actor.patterns
        ):
            return f"This token is limited to {', '.join(sorted(actor.patterns))}."
        owner = self.slug_of_owner(resource)
        if actor.only_owned and (not owner or owner not in self._covered_by(actor)):
            return "This token is limited to what its own team owns."
        return ""

    def who_may(self, action: Action, resource: str, but: int = 0) -> list[str] | None:
        """Return the names of members who may do it, leads first; None if it is not up to a team.

        Then a role alone decides.
        """
        rule = self.requirement_for(action, kind_of(resource))
        accepted = self._accepted_teams(rule, resource)
        if accepted is None:
            return None
        return self._list_members(accepted, rule.role, but)

    def role_in(self, actor: Actor, slug: str) -> Role | None:
        accepted, mine = self.slugs_up(slug), self._roles_in_teams(actor)
        if mine.keys().isdisjoint(accepted):
            return None
        return _strengthen(actor.role, any(mine.get(one) == "lead" for one in accepted))

    def approvers_of(self, slug: str) -> list[str]:
        return self._list_members(self.slugs_up(slug), Role.APPROVER)

    def _list_members(self, accepted: Sequence[str], least: Role, but: int = 0) -> list[str]:
        """Return the names of members of these teams with a role, of the first teams first."""
        found = []
        for user_id, member in self.members.items():
            place = min((accepted.index(t) for t in member.teams if t in accepted), default=None)
            if place is None or user_id == but:
                continue
            is_lead = any(member.teams.get(slug) == "lead" for slug in accepted)
            role = _strengthen(member.role, is_lead)
            if role is not None and RANKS[role] >= RANKS[least]:
                found.append((place, not is_lead, member.username))
        return [name for _, _, name in sorted(found)]

    def _accepted_teams(self, rule: Requirement, resource: str) -> list[str] | None:
        """Return the teams whose members have the rule's relation, nearest first; None: anyone."""
        if rule.relation == Relation.ANYONE or not self:
            return None
        if rule.relation == Relation.ROOT:
            return self.roots()
        return self.slugs_up(self.slug_of_owner(resource)) or None

    def _roles_in_teams(self, actor: Actor) -> Mapping[str, str]:
        if actor.team:
            return {actor.team: "member"}
        member = self.members.get(actor.user_id or 0)
        return member.teams if member else {}

    def _covered_by(self, actor: Actor) -> Collection[str]:
        return self._with_teams_below(self._roles_in_teams(actor))

    def _with_teams_below(self, slugs: Iterable[str]) -> frozenset[str]:
        above = set(slugs)
        return frozenset(one for one in self.names if not above.isdisjoint(self.slugs_up(one)))

    def _refuse(
        self,
        actor: Actor,
        action: Action,
        resource: str,
        rule: Requirement,
        owner: TeamName | None,
        *,
        is_related: bool,
    ) -> AuthorityDecision:
        phrase = PHRASES[action]
        if is_related:
            who = "admins" if rule.role == Role.ADMIN else f"the role {rule.role} or higher"
            whose = "your role" if actor.is_person else "the role of the token's owner"
            detail = f"{resource}: only {who} may {phrase}; {whose} is {actor.role}."
            return AuthorityDecision(False, owner, detail, least_role=rule.role)
        if rule.relation == Relation.ROOT:
            roots = " or ".join(sorted(self.names[slug] for slug in self.roots()))
            detail = f"{resource}: only members of {roots} may {phrase}."
        elif owner is not None and kind_of(resource) == TEAM:
            detail = f"{resource}: only members of {owner.name} may {phrase}."
        else:
            name = owner.name if owner else ""
            detail = f"{name} owns {resource}. Only its members may {phrase}."
        can_ask = (
            actor.is_person
            and actor.role is not None
            and RANKS[actor.role] >= RANKS[Role.OPERATOR]
            and _is_grantable(rule, action, resource)
        )
        return AuthorityDecision(
            False, owner, detail, can_ask=can_ask, action=action, resource=resource
        )


def _strengthen(role: Role | None, is_lead: bool) -> Role | None:
    """Return the role, or approver for a lead who is an operator."""
    return Role.APPROVER if is_lead and role == Role.OPERATOR else role


def _is_grantable(rule: Requirement, action: Action, resource: str) -> bool:
    """Return True if approvers may allow others the action for an hour.

    Approvals, changes of teams and what only admins may do would outlast the hour, or exceed what
    the approver may do.
    """
    return action != Action.APPROVE and kind_of(resource) != TEAM and rule.role != Role.ADMIN
