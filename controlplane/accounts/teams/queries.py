"""Reads of teams for their pages and API: the tree, members, ownership, pending requests."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q

from controlplane.accounts.models.teams import Membership, Ownership, Team
from controlplane.core import owned_resources
from controlplane.core.approvals.models import Approval
from controlplane.core.owned_resources import OwnedKind, OwnedResource
from controlplane.core.ownership import Owners, find_problem

from .storage import read_teams

LEAD = Membership.TeamRole.LEAD
MAX_DEPTH = 4
"""Deepest indentation in the list of teams."""


@dataclass
class TeamRow:
    """A team in the list; `leads` and `members` are numbers of active people."""

    team: Team
    depth: int
    members: int = 0
    leads: list[str] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    owned: int = 0
    is_mine: bool = False


@dataclass(frozen=True)
class PatternRow:
    """A pattern of a team, and the number of known resources that the team owns by it."""

    pattern: str
    owned: int


@dataclass(frozen=True)
class PatternPreview:
    """The effect of patterns: those with the resources owned by each, and changes of owners.

    `gained` are pairs of a resource and the name of its former owner, `lost` of its next one; the
    name is "" without an owner.
    """

    rows: Sequence[PatternRow]
    gained: Sequence[tuple[str, str]]
    lost: Sequence[tuple[str, str]]

    @property
    def taken(self) -> list[tuple[str, str]]:
        """The resources gained from other teams."""
        return [pair for pair in self.gained if pair[1]]


def list_teams(user_id: int | None) -> list[TeamRow]:
    """Return the teams as a tree: each team before those below it, by name."""
    rows: dict[int, TeamRow] = {}
    below: dict[int | None, list[Team]] = defaultdict(list)
    for team in Team.objects.order_by("-name"):
        below[team.parent_id].append(team)
    waiting = [(team, 0) for team in below[None]]
    while waiting:
        team, depth = waiting.pop()
        rows[team.pk] = TeamRow(team, min(depth, MAX_DEPTH))
        waiting += [(one, depth + 1) for one in below[team.pk]]
    # Teams may have been created since.
    memberships = Membership.objects.filter(team__in=rows, user__is_active=True)
    memberships = memberships.order_by("user__username")
    for team_id, role, name, member_id in memberships.values_list(
        "team_id", "role", "user__username", "user_id"
    ):
        row = rows[team_id]
        row.members += 1
        row.is_mine = row.is_mine or member_id == user_id
        if role == LEAD:
            row.leads.append(name)
    ownerships = (
        Ownership.objects.filter(team__in=rows)
        .order_by("pattern")
        .values_list("team_id", "pattern")
    )
    for team_id, pattern in ownerships:
        rows[team_id].patterns.append(pattern)
    state = read_teams()
    owners = Counter(state.slug_of_owner(one.name) for one in _list_resources(rows))
    for row in rows.values():
        row.owned = owners[row.team.slug]
    return list(rows.values())


def list_owned(slug: str) -> list[OwnedResource]:
    """Return the known resources that a team owns, without those of teams below it."""
    teams = read_teams()
    return [
        one for one in owned_resources.list_resources() if teams.slug_of_owner(one.name) == slug
    ]


def list_patterns(slug: str, owned: Iterable[OwnedResource]) -> list[PatternRow]:
    """Return the patterns of a team, with the number of `owned` resources by each."""
    patterns = list(
        Ownership.objects.filter(team__slug=slug)
        .order_by("pattern")
        .values_list("pattern", flat=True)
    )
    own = Owners((one, one) for one in patterns)
    counts = Counter(own.owner_of(one.name) for one in owned)
    return [PatternRow(one, counts[one]) for one in patterns]


def count_by_kind(resources: Iterable[OwnedResource]) -> list[tuple[OwnedKind, int]]:
    """Return each kind of resources with their number, without kinds that have none."""
    counts = Counter(one.kind.name for one in resources)
    return [
        (kind, counts[name]) for name, kind in owned_resources.OWNED_KINDS.items() if counts[name]
    ]


def preview_patterns(slug: str, patterns: Collection[str]) -> PatternPreview:
    """Return what would change if these were all patterns of the team `slug`."""
    teams = read_teams()
    valid = [one for one in patterns if not find_problem(one)]
    others = [pair for pair in teams.patterns if pair[1] != slug and pair[0] not in valid]
    after = Owners([*others, *((one, slug) for one in valid)])
    own, counts = Owners((one, one) for one in valid), Counter[str]()
    gained, lost = [], []
    for one in owned_resources.list_resources():
        owner, new = teams.slug_of_owner(one.name), after.owner_of(one.name)
        if new == slug:
            counts[own.owner_of(one.name)] += 1
        if owner != slug and new == slug:
            gained.append((one.name, teams.names.get(owner, "")))
        elif owner == slug and new != slug:
            lost.append((one.name, teams.names.get(new, "")))
    return PatternPreview([PatternRow(one, counts[one]) for one in valid], gained, lost)


def list_pending(slug: str = "") -> Sequence[Approval]:
    """Return the pending requests to change a team, or else all teams and rules, oldest first."""
    rows = Approval.objects.filter(
        kind=Approval.Kind.AUTHORITY_CHANGE, state=Approval.State.PENDING
    )
    if slug:
        rows = rows.filter(Q(target=f"team:{slug}") | Q(target__startswith=f"team:{slug}#"))
    return list(rows.select_related("requester").order_by("id"))


def _list_resources(rows: Mapping[int, Any]) -> list[OwnedResource]:
    return owned_resources.list_resources() if rows else []
