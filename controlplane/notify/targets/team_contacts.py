"""Contacts of teams: who is on call for them, and the channels for what they own."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from controlplane.core import authority
from controlplane.core.outbox.router import OnCall
from controlplane.notify.models.targets import Target
from controlplane.notify.models.teams import TeamContact

from . import directory, reach

ON_CALL, CHANNEL, ESCALATION = TeamContact.Kind.values
KINDS_OF_TARGETS = {
    ON_CALL: (Target.Kind.ON_CALL, Target.Kind.PERSON),
    CHANNEL: (Target.Kind.CHANNEL,),
    ESCALATION: (Target.Kind.ESCALATION,),
}
"""Kinds of the targets that each kind of contact may have."""


def people_on_call(slugs: Collection[str], now: datetime) -> dict[str, OnCall]:
    """Return who is on call for each of these teams, in at most four queries.

    Reading teams after a change takes a few more. If a team's rotation is missing or empty, or the
    person on duty is deactivated, the nearest team above stands in. Teams without anybody are left
    out.
    """
    teams = authority.read_teams()
    chains = {slug: [one.slug for one in teams.chain_of(f"team:{slug}")] for slug in slugs}
    rotations = read_contacts({one for chain in chains.values() for one in chain}, ON_CALL)
    known = directory.read_directory(one for targets in rotations.values() for one in targets)
    people = {}
    for (slug, _), targets in rotations.items():
        person = known.behind(targets[0], now)
        if person is not None and (person.user is None or person.user.is_active):
            people[slug] = _build_on_call(slug, person)
    found = {}
    for slug, chain in chains.items():
        nearest = next((people[one] for one in chain if one in people), None)
        if nearest is not None:
            found[slug] = nearest
    return found


def destinations_on_call(
    slugs: Sequence[str], now: datetime, *, but: int | None = None
) -> list[str]:
    """Return the destinations of the person on call for the first of these teams that has one.

    The person with the user id `but` is skipped.
    """
    rotations = read_contacts(slugs, ON_CALL)
    known = directory.read_directory(one for targets in rotations.values() for one in targets)
    for slug in slugs:
        for target in rotations.get((slug, ON_CALL), ()):
            person = known.behind(target, now)
            if person is None or (but is not None and person.user_id == but):
                continue
            if found := list(filter(reach.is_configured, known.destinations(target, now))):
                return found
    return []


def read_channels(now: datetime) -> dict[str, list[str]]:
    """Return the usable destinations of all teams that have any, by slug, in one query."""
    channels: dict[str, list[Target]] = defaultdict(list)
    rows = TeamContact.objects.filter(kind=CHANNEL).select_related("team", "target__user")
    for row in rows.order_by("target__name"):
        channels[row.team.slug].append(row.target)
    # A channel stands for itself: it has no members or steps to read.
    nothing_behind = directory.Directory({}, {})
    found = {slug: nothing_behind.unique(targets, now) for slug, targets in channels.items()}
    usable = {slug: list(filter(reach.is_configured, to)) for slug, to in found.items()}
    return {slug: to for slug, to in usable.items() if to}


def read_contacts(slugs: Iterable[str], *kinds: str) -> Mapping[tuple[str, str], list[Target]]:
    """Return the targets of the teams' contacts by slug and kind, by name, in one query."""
    found = defaultdict(list)
    rows = TeamContact.objects.filter(team__slug__in=list(slugs), kind__in=kinds)
    for row in rows.select_related("team", "target__user").order_by("target__name"):
        found[row.team.slug, row.kind].append(row.target)
    return found


def _build_on_call(slug: str, person: Target) -> OnCall:
    account = person.user
    if account is None:
        return OnCall(slug, person.name)
    return OnCall(slug, person.name, account.pk, account.username)
