"""State of authority at a past moment, put together from entries of the audit trail.

It decides on one action and one resource, by the same rules as :mod:`.state`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from controlplane.core.actions import Action, Relation, Requirement
from controlplane.core.actors import Actor
from controlplane.core.authority import PastRule, Period
from controlplane.core.ownership import kind_of
from controlplane.core.roles import SCOPES_OF, Role

from .state import TEAM, Member, TeamState

RULE_CHANGED = "authority.changed"
HANDED_OVER, REVOKED = "token.handed_over", "token.revoked"
PROBE = 1
"""The user id of the person or token that is decided on."""
SCOPES_OF_KIND: Mapping[str, frozenset[str]] = {
    "dependency": frozenset({"breakers:write"}),
    "service": frozenset({"breakers:write"}),
    "slo": frozenset({"slo:write"}),
    "stream": frozenset({"dlq:write"}),
    TEAM: frozenset(),
}
"""The scopes of which a token needs one; those of switches depend on the action."""
RELEASE_SCOPES = frozenset({"switches:write", "ramps:write"})
SWITCH_SCOPES: Mapping[Action, frozenset[str]] = {
    Action.ENGAGE: RELEASE_SCOPES | {"switches:trip", "switches:emergency"},
    Action.RELEASE: RELEASE_SCOPES,
    Action.RELEASE_AT_ONCE: RELEASE_SCOPES,
}
"""The scopes of which a token needs one for a switch; `switches:write` for other actions."""
Holders = dict[tuple[str, str], tuple[str, datetime | None]]
"""Reasons, and ends of tokens, by kind and name of those who may do the action."""


@dataclass(frozen=True)
class AuthorityEntry:
    """An entry of the trail that authority may depend on."""

    at: datetime
    action: str
    target: str
    after: Any


@dataclass
class PastState:
    """The people, teams, rules and tokens that decided on an action and a resource at one moment.

    Decisions are cached until one of these changes: a day may have many other changes.
    """

    action: Action
    resource: str
    people: dict[str, tuple[Role, bool]] = field(default_factory=dict)
    teams: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    rules: dict[tuple[Action, str], Requirement] = field(default_factory=dict)
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    _known_teams: TeamState | None = None
    _memberships: dict[str, dict[str, str]] = field(default_factory=dict)
    _people_reasons: dict[str, str] = field(default_factory=dict)
    _token_reasons: dict[str, str] = field(default_factory=dict)

    def apply(self, change: AuthorityEntry) -> None:
        kind, _, name = change.target.partition(":")
        if change.action == RULE_CHANGED:
            self._apply_rule(name, change.after)
            self._forget_teams()
        elif kind == "user":
            after = change.after
            self.people[name] = Role(after["role"]), bool(after["is_active"])
            self._forget_person(name)
        elif kind == TEAM:
            self._apply_team(name, change.after)
        else:
            self._token_reasons.pop(name, None)
            if change.action == HANDED_OVER:  # The entry names a team only if the token has one.
                change = replace(change, after={"team": None, **change.after})
            token = {**self.tokens.pop(name, {}), **(change.after or {})}
            if change.action != REVOKED:
                self.tokens[name] = token

    def _apply_team(self, slug: str, after: Mapping[str, Any] | None) -> None:
        before = self.teams.pop(slug, None)
        if after is not None:
            self.teams[slug] = after
        if self._known_teams is None or not before or not after or _differs(before, after):
            self._forget_teams()
            return
        members = before["members"], after["members"]
        for name in members[0].keys() | members[1].keys():
            old, new = (each.get(name, {}).get("role") for each in members)
            if old != new:
                roles = self._memberships.setdefault(name, {})
                roles.pop(slug, None)
                if new is not None:
                    roles[slug] = new
                self._forget_person(name)

    def _forget_person(self, name: str) -> None:
        self._people_reasons.pop(name, None)
        for prefix, token in self.tokens.items():
            if token["owner"] == name:
                self._token_reasons.pop(prefix, None)

    def _forget_teams(self) -> None:
        self._known_teams = None
        self._people_reasons.clear()
        self._token_reasons.clear()

    def _apply_rule(self, name: str, after: Mapping[str, str] | None) -> None:
        action, _, kind = name.partition(":")
        key = Action(action), kind
        self.rules.pop(key, None)
        if after is not None:
            self.rules[key] = Requirement(Relation(after["relation"]), Role(after["role"]))

    def read_teams(self) -> TeamState:
        """Return the teams without members."""
        if self._known_teams is None:
            self._known_teams = TeamState(
                names={slug: team["name"] for slug, team in self.teams.items()},
                parents={slug: team["parent"] or "" for slug, team in self.teams.items()},
                patterns=[(one, slug) for slug, team in self.teams.items() for one in team["owns"]],
                rules=self.rules,
            )
            self._memberships = {}
            for slug, team in self.teams.items():
                for name, membership in team["members"].items():
                    self._memberships.setdefault(name, {})[slug] = membership["role"]
        return self._known_teams

    def find_holders(self, at: datetime) -> Holders:
        """Return who may do the action on the resource, without granted permissions."""
        teams, reasons, token_reasons = self.read_teams(), self._people_reasons, self._token_reasons
        for name in self.people.keys() - reasons.keys():
            reasons[name] = self._decide_person(teams, name)
        found: Holders = {("user", name): (text, None) for name, text in reasons.items() if text}
        for prefix, token in self.tokens.items():
            if prefix not in token_reasons:
                token_reasons[prefix] = self._decide_token(teams, token)
            ends = parse_datetime(token["expires_at"]) if token.get("expires_at") else None
            if token_reasons[prefix] and (ends is None or ends > at):
                name = f"{token['name']} (sg_{prefix}_…)"
                found["token", name] = token_reasons[prefix], ends
        return found

    def describe_rule(self, span: Period) -> PastRule:
        teams = self.read_teams()
        requirement = teams.requirement_for(self.action, kind_of(self.resource))
        return PastRule(span, teams.owner_of(self.resource), requirement)

    def may_use_grant(self, name: str) -> bool:
        """Return True if the person may do it only with a permission granted by the owner."""
        role, is_active = self.people.get(name, (Role.VIEWER, False))
        teams = self.read_teams()
        teams.members = {PROBE: self._build_member(name, role)}
        decision = teams.decide(_build_person(name, role), self.action, self.resource)
        return is_active and decision.can_ask

    def _decide_person(self, teams: TeamState, name: str) -> str:
        """Return why a person may do it, "" if they may not."""
        role, is_active = self.people[name]
        if not is_active:
            return ""
        return self._decide(teams, self._build_member(name, role), _build_person(name, role))

    def _build_member(self, name: str, role: Role) -> Member:
        return Member(name, role, self._memberships.get(name, {}))

    def _decide_token(self, teams: TeamState, token: Mapping[str, Any]) -> str:
        """Return why a token may do it, "" if it may not."""
        of_switches = SWITCH_SCOPES.get(self.action, frozenset({"switches:write"}))
        needed = SCOPES_OF_KIND.get(kind_of(self.resource), of_switches)
        if needed.isdisjoint(token["scopes"]):
            return ""
        owner, team = token["owner"], token.get("team") or ""
        role, is_active = self.people.get(owner, (Role.VIEWER, False))
        if team:
            role = Role.OPERATOR
        elif not is_active:
            return ""
        actor = Actor(
            "token",
            token["name"],
            user_id=PROBE,
            token_id=PROBE,
            role=role,
            scopes=frozenset(token["scopes"]),
            team=team,
            patterns=frozenset(token.get("patterns") or ()),
            only_owned=bool(token.get("only_owned")),
        )
        own = {team: "member"} if team else self._memberships.get(owner, {})
        because = self._decide(teams, Member(owner, role, own), actor)
        return because and f"token of {team or owner}: {because}"

    def _decide(self, teams: TeamState, member: Member, actor: Actor) -> str:
        """Return why the actor may do it, such as `operator, lead of Payments`; "" if not."""
        teams.members = {PROBE: member}
        if not teams.decide(actor, self.action, self.resource).is_allowed:
            return ""
        rule = teams.requirement_for(self.action, kind_of(self.resource))
        if rule.relation == Relation.ANYONE or not teams:
            return str(member.role)
        accepted = [team.slug for team in teams.chain_of(self.resource)]
        if rule.relation == Relation.ROOT:
            accepted = teams.roots()
        nearest = next((slug for slug in accepted if slug in member.teams), "")
        if not nearest:
            return str(member.role)
        return f"{member.role}, {member.teams[nearest]} of {teams.names[nearest]}"


def _differs(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return True if two states of a team differ in what decides on people beside its members."""
    return any(before[field] != after[field] for field in ("name", "parent", "owns"))


def _build_person(name: str, role: Role) -> Actor:
    return Actor("user", name, user_id=PROBE, role=role, scopes=SCOPES_OF[role])
