"""Decisions of the default rules for sample people and tokens, as a table of the documentation.

Payments is a team below Commerce, which is below the root team Operations; Search is another team
below Operations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controlplane.accounts.teams.state import Member, TeamState
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.authority import AuthorityDecision
from controlplane.core.roles import SCOPES_OF, Role

PARENTS = {
    "operations": "",
    "commerce": "operations",
    "payments": "commerce",
    "search": "operations",
}
OWNER = "payments"
RESOURCES = {
    "global": "global:all",
    "segment": "segment:finance",
    "feature": "feature:export",
    "experiment": "experiment:checkout-b",
    "service": "service:core",
    "dependency": "dependency:core->oracle",
    "slo": "slo:core-availability",
    "stream": "stream:orders",
    "team": "team:payments",
}
SWITCHES = ("segment", "feature", "experiment")
KINDS_OF: Mapping[Action, Sequence[str]] = {
    Action.ENGAGE: ("global", *SWITCHES, "dependency"),
    Action.EXTEND: ("global", *SWITCHES, "slo"),
    Action.RELEASE: ("global", *SWITCHES),
    Action.RELEASE_AT_ONCE: ("global", *SWITCHES),
    Action.APPROVE: ("global", *SWITCHES, "dependency", "slo", "stream", "team"),
    Action.OVERRIDE: ("dependency", "slo"),
    Action.REPLAY: ("stream",),
    Action.PURGE: ("stream",),
    Action.EDIT: ("global", *SWITCHES, "service", "dependency", "slo", "stream", "team"),
}
"""The kinds of resources on which people can do each action."""


@dataclass(frozen=True)
class Persona:
    """A person, or a token of theirs; `team` is the person's, or the one that owns the token."""

    name: str
    role: Role
    team: str = ""
    is_lead: bool = False
    is_token: bool = False
    services: frozenset[str] = frozenset()


PERSONAS = (
    Persona("viewer", Role.VIEWER, OWNER),
    Persona("operator elsewhere", Role.OPERATOR, "search"),
    Persona("approver elsewhere", Role.APPROVER, "search"),
    Persona("member", Role.OPERATOR, OWNER),
    Persona("lead", Role.OPERATOR, OWNER, is_lead=True),
    Persona("member of the parent", Role.OPERATOR, "commerce"),
    Persona("approver of the root", Role.APPROVER, "operations"),
    Persona("admin elsewhere", Role.ADMIN),
    Persona("token of the team", Role.OPERATOR, OWNER, is_token=True),
    Persona("token elsewhere", Role.OPERATOR, is_token=True, services=frozenset({"core"})),
)


def render_authority_matrix(arguments: Iterable[str]) -> list[str]:
    """Return the table for resources that are `owned` by Payments, or for `unowned` ones."""
    (which,) = arguments
    patterns = [(resource, OWNER) for resource in RESOURCES.values() if which == "owned"]
    teams = build_teams(patterns)
    rows = []
    for action, kinds in KINDS_OF.items():
        shown = [kind for kind in kinds if which == "owned" or kind != "team"]
        verb = action.replace("_", " ")
        for cells, alike in _group_kinds(teams, action, shown).items():
            rows.append(f"| {verb} | {_join_kinds(alike)} | {' | '.join(cells)} |")
    names = " | ".join(persona.name for persona in PERSONAS)
    return [f"| action | on | {names} |", "|---" * (len(PERSONAS) + 2) + "|", *rows]


def build_teams(patterns: Sequence[tuple[str, str]]) -> TeamState:
    """Return the sample teams with all sample people, by their places in `PERSONAS`."""
    members = {
        number: Member(
            persona.name, persona.role, {persona.team: "lead" if persona.is_lead else "member"}
        )
        for number, persona in enumerate(PERSONAS, start=1)
        if persona.team and not persona.is_token
    }
    names = {slug: slug.capitalize() for slug in PARENTS}
    return TeamState(names=names, parents=PARENTS, members=members, patterns=patterns)


def decide(teams: TeamState, persona: Persona, action: Action, kind: str) -> AuthorityDecision:
    """Return the decision on an action of the persona on the sample resource of a kind."""
    actor = Actor(
        type="token" if persona.is_token else "user",
        name=persona.name,
        user_id=PERSONAS.index(persona) + 1,
        role=persona.role,
        scopes=SCOPES_OF[persona.role],
        services=persona.services,
        team=persona.team if persona.is_token else "",
    )
    return teams.decide(actor, action, RESOURCES[kind])


def _group_kinds(
    teams: TeamState, action: Action, kinds: Iterable[str]
) -> dict[tuple[str, ...], list[str]]:
    """Return the kinds of resources by their cells, so that equal rows are one."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for kind in kinds:
        decisions = [decide(teams, persona, action, kind) for persona in PERSONAS]
        groups.setdefault(tuple(map(_render_cell, decisions)), []).append(kind)
    return groups


def _render_cell(decision: AuthorityDecision) -> str:
    if decision.is_allowed:
        return "yes"
    return "asks" if decision.can_ask else "no"


def _join_kinds(kinds: Sequence[str]) -> str:
    if set(SWITCHES) <= set(kinds):
        kinds = ["other switches", *(kind for kind in kinds if kind not in SWITCHES)]
        if "global" in kinds:
            kinds = ["all switches", *(kind for kind in kinds[1:] if kind != "global")]
    return ", ".join(kinds)
