"""The people and tokens of the table in docs/authority.md, in real teams, and their permissions."""

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from django.test import Client

from controlplane.accounts.models.people import User
from controlplane.accounts.models.teams import Membership, Ownership, Team
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import browser_of, person
from controlplane.core.roles import EXCLUSIVE_SCOPES, SCOPES_OF
from controlplane.documentation import authority_matrix as table
from controlplane.documentation.authority_matrix import OWNER, PARENTS, PERSONAS, Persona
from controlplane.tests.security.callers import person_may, token_scopes
from controlplane.tests.security.matrix import Need, kind_of_resource

OWNED = table.build_teams([(resource, OWNER) for resource in table.RESOURCES.values()])
OTHER = "search"


class Caller(NamedTuple):
    persona: Persona
    client: Client

    def may(self, need: Need, route: str) -> bool:
        """Return True if this caller may use a path that is an action on what Payments owns."""
        persona = self.persona
        if persona.is_token and not token_scopes(need):
            return False
        # Instead of the rank, which the decision contains.
        by_role = person_may(need._replace(rank="viewer"), persona.role)
        kind = kind_of_resource(route)
        return by_role and all(
            not kind or table.decide(OWNED, persona, action, kind).is_allowed
            for action in need.actions
        )


def create_callers(root_admin: User, there: dict[str, list[str]]) -> Mapping[str, Caller]:
    """Create the teams of the table, with Payments as the owner of everything, and the callers.

    The lead leads two teams. `root_admin` becomes a member of the root team. The arguments of paths
    in `there` then lead to Payments and to a member of it.
    """
    teams: dict[str, Team] = {}
    for slug, parent in PARENTS.items():
        above = teams[parent] if parent else None
        teams[slug] = Team.objects.create(
            slug=slug, name=slug.capitalize(), parent=above, created_at=db_now()
        )
    for kind in table.RESOURCES:
        if kind != "team":
            Ownership.objects.create(pattern=f"{kind}:*", team=teams[OWNER])
    Membership.objects.create(team=teams["operations"], user=root_admin)
    found = {persona.name: Caller(persona, _create_client(persona, teams)) for persona in PERSONAS}
    there["teams slug"] = [OWNER]
    members = Membership.objects.filter(team=teams[OWNER], user__username="persona-member")
    there["members user_id"] = [str(members.values_list("user_id", flat=True).get())]
    return found


def _create_client(persona: Persona, teams: Mapping[str, Team]) -> Client:
    user = person(persona.role, f"persona-{persona.name.replace(' ', '-')}")
    if persona.is_token:
        _token, text = tokens.create_token(
            name=persona.name,
            owner=user,
            scopes=SCOPES_OF[persona.role] - EXCLUSIVE_SCOPES,
            actor=system_actor("tests"),
            now=db_now(),
            lifetime=timedelta(hours=1),
            limit_to=persona.services,
            team=teams.get(persona.team),
        )
        return Client(raise_request_exception=False, headers={"authorization": f"Bearer {text}"})
    role = "lead" if persona.is_lead else "member"
    if persona.team:
        Membership.objects.create(team=teams[persona.team], user=user, role=role)
    if persona.is_lead:
        Membership.objects.create(team=teams[OTHER], user=user, role=role)
    return browser_of(user)
