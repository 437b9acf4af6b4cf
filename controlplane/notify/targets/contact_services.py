"""Reads and writes of a team's contacts: rotation on call, channels and escalation.

Contacts are no authority, so that who may edit the team changes them without approval.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from controlplane.accounts.models.teams import Team
from controlplane.core import authority, canonical
from controlplane.core.actions import Action
from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.errors import Conflict, InvalidInput, NotFound
from controlplane.core.json_values import Errors
from controlplane.core.message_templates import SEVERITIES
from controlplane.core.outbox.escalation import Escalation
from controlplane.core.outbox.router import OnCall
from controlplane.notify.models.targets import Target
from controlplane.notify.models.teams import TeamContact

from . import directory, fields, reach, routing
from .fields import Reference
from .reach import Reach
from .services import lock_targets
from .team_contacts import (
    CHANNEL,
    ESCALATION,
    KINDS_OF_TARGETS,
    ON_CALL,
    people_on_call,
    read_contacts,
)

MAX_CHANNELS = 10
ACTION = "team.contacts_changed"
FIELDS = {"on_call": ON_CALL, "channels": CHANNEL, "escalation": ESCALATION}
"""Kinds of contacts, by their fields in forms, the API and files."""
_NOUNS = {
    ON_CALL: "a rotation or a person",
    CHANNEL: "a channel",
    ESCALATION: "an escalation other than that of a severity",
}


@dataclass(frozen=True)
class TeamContacts:
    """The contacts of a team, each with what it reaches now.

    `person` is on call for the team. `substitute` is the team above whose channels get the
    messages, if none of its own can be reached; "" if nobody's do.
    """

    on_call: tuple[Target, Reach] | None
    channels: Sequence[tuple[Target, Reach]]
    escalation: tuple[Target, Reach] | None
    person: OnCall | None
    substitute: str


def describe_contacts(slug: str, now: datetime) -> TeamContacts:
    contacts = read_contacts([slug], *FIELDS.values())
    known = directory.read_directory(one for targets in contacts.values() for one in targets)
    found: dict[str, list[tuple[Target, Reach]]] = defaultdict(list)
    for (_, kind), targets in contacts.items():
        found[kind] = [(one, reach.reach_from(one, known, now)) for one in targets]
    chain = authority.read_teams().chain_of(f"team:{slug}")
    usable = routing.read_channels(now)
    nearest = next((one for one in chain if one.slug in usable), None)
    return TeamContacts(
        on_call=next(iter(found[ON_CALL]), None),
        channels=found[CHANNEL],
        escalation=next(iter(found[ESCALATION]), None),
        person=people_on_call([slug], now).get(slug),
        substitute=nearest.name if nearest and nearest.slug != slug else "",
    )


def read_document(slug: str) -> dict[str, Any]:
    """Return the names of a team's contacts, as in the API, audit rows and files."""
    contacts = read_contacts([slug], *FIELDS.values())
    names = {
        name: [one.name for one in contacts.get((slug, kind), ())] for name, kind in FIELDS.items()
    }
    return build_document(names)


def build_document(names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {
        "on_call": next(iter(names.get("on_call", ())), None),
        "channels": sorted(names.get("channels", ())),
        "escalation": next(iter(names.get("escalation", ())), None),
    }


def get_revision(document: Mapping[str, Any]) -> str:
    return canonical.digest(document)


@transaction.atomic
def set_contacts(
    *,
    slug: str,
    on_call: Reference | None = None,
    channels: Sequence[Reference] = (),
    escalation: Reference | None = None,
    seen: str = "",
    actor: Actor,
    now: datetime,
) -> dict[str, Any]:
    """Replace the contacts of a team, by ids or names of targets; return their document.

    Raises :class:`Forbidden` unless the actor may edit the team, :class:`NotFound`,
    :class:`InvalidInput`, and :class:`Conflict` if the contacts have no longer the revision `seen`.
    Unacknowledged escalations are checked again at once.
    """
    team = Team.objects.filter(slug=slug).first()
    if team is None:
        raise NotFound(f"There is no team {slug}.")
    authority.require(actor, Action.EDIT, f"team:{slug}")
    lock_targets()
    before = read_document(slug)
    if seen not in ("", get_revision(before)):
        raise Conflict("Someone else changed these contacts. Open them again.")
    chosen = check_contacts(on_call, channels, escalation)
    save_contacts(team, chosen)
    after = read_document(slug)
    if after != before:
        recheck_escalations(now)
        audit.record(
            actor=actor, action=ACTION, target=f"team:{slug}", before=before, after=after, now=now
        )
    return after


def check_contacts(
    on_call: Reference | None, channels: Sequence[Reference], escalation: Reference | None
) -> dict[str, list[Target]]:
    """Return the targets by kind of contact; raise :class:`InvalidInput`."""
    errors: Errors = {}
    given = {
        "on_call": [on_call] if on_call else [],
        "channels": list(dict.fromkeys(channels)),
        "escalation": [escalation] if escalation else [],
    }
    chosen: dict[str, list[Target]] = {}
    for name, kind in FIELDS.items():
        chosen[kind] = []
        for reference in given[name]:
            target = fields.find_target(reference)
            if target is None:
                errors.setdefault(name, []).append(f"There is no target {reference}.")
            elif target.kind not in KINDS_OF_TARGETS[kind] or target.name in SEVERITIES:
                errors.setdefault(name, []).append(f"{target.name} is not {_NOUNS[kind]}.")
            elif target not in chosen[kind]:
                chosen[kind].append(target)
    if len(chosen[CHANNEL]) > MAX_CHANNELS:
        errors.setdefault("channels", []).append(f"At most {MAX_CHANNELS} channels.")
    if errors:
        raise InvalidInput(errors)
    return chosen


def save_contacts(team: Team, chosen: Mapping[str, Sequence[Target]]) -> None:
    TeamContact.objects.filter(team=team).delete()
    TeamContact.objects.bulk_create(
        TeamContact(team=team, kind=kind, target=target)
        for kind, targets in chosen.items()
        for target in targets
    )


def recheck_escalations(now: datetime) -> None:
    """Have unacknowledged escalations checked again at once, as their steps may have changed."""
    Escalation.objects.filter(closed_at=None, acknowledged_at=None).update(next_at=now)
