"""Ladders of escalations: the steps of the owner, those of each team above, then the severity's."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.core import authority
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.outbox.escalation import Escalation
from controlplane.notify.models.targets import EscalationStep, Target
from controlplane.notify.targets import directory, reach, team_contacts
from controlplane.notify.targets.directory import Directory
from controlplane.notify.targets.reach import Rung
from controlplane.notify.targets.team_contacts import ESCALATION, ON_CALL

CLIMB_MINUTES = 15
"""Time between the last step of a team and the first of the next team, or of the severity."""


@dataclass(frozen=True)
class Ladder:
    """The steps of an escalation, and the slug of the team that owns its resource, or ""."""

    rungs: Sequence[Rung]
    owner: str = ""


def read_ladders(escalations: Iterable[Escalation], now: datetime) -> dict[int, Ladder]:
    """Return the ladders of escalations by id, in at most five queries."""
    found = list(escalations)
    chains = _read_chains({one.resource for one in found if one.resource})
    contacts = team_contacts.read_contacts(
        {slug for chain in chains.values() for slug in chain}, ON_CALL, ESCALATION
    )
    targets = [target for several in contacts.values() for target in several]
    steps = reach.steps_of(SEVERITIES, [one.pk for one in targets if one.kind == "escalation"])
    known = directory.read_directory([*targets, *(step.target for step in steps)])
    by_escalation: dict[int, list[Rung]] = defaultdict(list)
    for step in steps:
        rung = Rung(step, reach.reach_from(step.target, known, now))
        by_escalation[step.escalation_id].append(rung)
    severities = reach.group_rungs(steps, SEVERITIES, known, now)
    ladders = {}
    for one in found:
        chain = chains.get(one.resource, [])
        teams = [_team_rungs(slug, contacts, by_escalation, known, now) for slug in chain]
        rungs = join_sections([*teams, severities[one.severity]])
        ladders[one.pk] = Ladder(rungs, chain[0] if chain else "")
    return ladders


def join_sections(sections: Iterable[Sequence[Rung]]) -> list[Rung]:
    """Return the steps of several ladders as one; each begins after the last step of the former.

    A section that reaches nobody takes no time. A target of an earlier section is left out.
    """
    found: list[Rung] = []
    start, seen = 0, set[int]()
    for section in sections:
        fresh = [rung for rung in section if rung.step.target_id not in seen]
        seen |= {rung.step.target_id for rung in fresh}
        if any(rung.reach.to for rung in fresh):
            found += [_delay_rung(start + rung.step.after_minutes, rung) for rung in fresh]
            start += fresh[-1].step.after_minutes + CLIMB_MINUTES
        else:
            found += [_delay_rung(start, rung) for rung in fresh]
    return found


def _read_chains(resources: set[str]) -> dict[str, list[str]]:
    if not resources:
        return {}
    teams = authority.read_teams()
    return {resource: [one.slug for one in teams.chain_of(resource)] for resource in resources}


def _team_rungs(
    slug: str,
    contacts: Mapping[tuple[str, str], Sequence[Target]],
    by_escalation: Mapping[int, Sequence[Rung]],
    known: Directory,
    now: datetime,
) -> list[Rung]:
    """Return the team's own steps; if they reach nobody, the person on call, at once."""
    found = [
        rung
        for target in contacts.get((slug, ESCALATION), ())
        for rung in by_escalation.get(target.pk, ())
    ]
    if any(rung.reach.to for rung in found):
        return found
    on_call = [
        Rung(EscalationStep(after_minutes=0, target=target), reach.reach_from(target, known, now))
        for target in contacts.get((slug, ON_CALL), ())
    ]
    return join_sections([found, on_call])


def _delay_rung(minutes: int, rung: Rung) -> Rung:
    """Return a step with another delay."""
    return Rung(EscalationStep(after_minutes=minutes, target=rung.step.target), rung.reach)
