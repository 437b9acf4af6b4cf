"""Contents of the Notifications page: escalations, teams, people, channels and routes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Q

from controlplane.accounts.models.teams import Team
from controlplane.core.message_templates import MESSAGE_TEMPLATES, SEVERITIES
from controlplane.notify.models.targets import Route, Target
from controlplane.notify.transports import destinations

from . import directory, reach, usage
from .directory import Directory
from .reach import Reach
from .team_contacts import CHANNEL, ESCALATION, ON_CALL, read_contacts

SHOWN = 200
MAX_TEAMS = 500
SEVERITY_ESCALATIONS = Q(name__in=SEVERITIES, kind=Target.Kind.ESCALATION)


@dataclass(frozen=True)
class TargetRow:
    """A row of the table of targets.

    `where` are labels of the target's destinations, `used_by` texts about its uses. `address` is a
    channel's address without secrets; empty for other kinds.
    """

    target: Target
    reach: Reach
    where: list[str]
    used_by: list[str]
    address: str = ""


def page_context(now: datetime, *, page: str | None = None, routes: str | None = None) -> Any:
    """Return the template context of the Notifications page.

    `page` and `routes` are the page numbers of the tables of targets and of routes.
    """
    targets = Target.objects.select_related("user").order_by("name")
    listed = Paginator(targets.exclude(SEVERITY_ESCALATIONS), SHOWN).get_page(page)
    ways = Route.objects.select_related("target__user").order_by("id")
    routed = Paginator(ways, SHOWN).get_page(routes)
    shown = list(listed.object_list)
    all_teams = list(Team.objects.order_by("name", "slug")[:MAX_TEAMS])
    contacts = read_contacts([one.slug for one in all_teams], ON_CALL, CHANNEL, ESCALATION)
    known = directory.read_directory(
        [
            *shown,
            *(route.target for route in routed.object_list),
            *(target for several in contacts.values() for target in several),
        ]
    )
    rows = _target_rows([one for one in shown if one.kind != Target.Kind.ESCALATION], known, now)
    return {
        "severities": _severity_rows([one for one in shown if one.kind == "escalation"], now),
        "people": [row for row in rows if row.target.kind == "person"],
        "channels": [row for row in rows if row.target.kind == "channel"],
        "rotations": [
            _rotation_row(row, known, now) for row in rows if row.target.kind == "on_call"
        ],
        "routes": [
            {
                "route": route,
                "reach": reach.reach_from(route.target, known, now),
                "matches": sum(fnmatchcase(event, route.event) for event in MESSAGE_TEMPLATES),
            }
            for route in routed.object_list
        ],
        "teams": [_team_row(one, contacts, known, now) for one in all_teams],
        "has_recipient": reach.has_recipient(now),
        "targets_page": listed,
        "routes_page": routed,
    }


def _team_row(
    team: Team,
    contacts: Mapping[tuple[str, str], Sequence[Target]],
    known: Directory,
    now: datetime,
) -> dict[str, Any]:
    """Return a team's contacts for the page, each with what it reaches."""
    reaches = {
        kind: [
            (one, reach.reach_from(one, known, now)) for one in contacts.get((team.slug, kind), ())
        ]
        for kind in (ON_CALL, CHANNEL, ESCALATION)
    }
    return {"team": team, **reaches}


def _severity_rows(others: Sequence[Target], now: datetime) -> list[dict[str, Any]]:
    present = {one.name: one for one in Target.objects.filter(SEVERITY_ESCALATIONS)}
    found = [present[name] for name in SEVERITIES if name in present] + [*others]
    ladders = reach.read_ladders([one.name for one in found], now)
    return [
        {"target": one, "rungs": rungs, "silent": not any(rung.reach.to for rung in rungs)}
        for one in found
        for rungs in [ladders[one.name]]
    ]


def _target_rows(targets: Sequence[Target], known: Directory, now: datetime) -> list[TargetRow]:
    users = usage.list_uses(targets)
    found = []
    for target in targets:
        reached = reach.reach_from(target, known, now)
        transport = destinations.transport_of(target)
        address = transport.shown_address(target) if transport else target.address
        where = destinations.describe_destinations(reached.to)
        found.append(TargetRow(target, reached, where, users[target.pk], address))
    return found


def _rotation_row(row: TargetRow, known: Directory, now: datetime) -> dict[str, Any]:
    names = [person.name for person in known.members.get(row.target.pk, ())]
    shown = {"row": row, "people": names}
    if (duty := known.on_duty(row.target, now)) is None:
        return shown
    person, turn = duty
    following = names[(turn.member + 1) % len(names)] if len(names) > 1 else ""
    return {**shown, "person": person, "turn": turn, "following": following}
