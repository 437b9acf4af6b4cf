"""Contents of the Targets page: escalations, people, channels, rotations and routes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from django.core.paginator import Paginator

from controlplane.core.message_templates import MESSAGE_TEMPLATES, SEVERITIES
from controlplane.notify.models.targets import Route, Target
from controlplane.notify.transports import destinations

from . import directory, reach, usage
from .directory import Directory
from .on_call_rotation import DutyTurn
from .reach import Reach, Rung

SHOWN = 200


@dataclass(frozen=True)
class SeverityRow:
    """An escalation with its steps; `silent` if no step reaches anybody."""

    target: Target
    rungs: list[Rung]

    @property
    def silent(self) -> bool:
        return not any(rung.reach.to for rung in self.rungs)


@dataclass(frozen=True)
class TargetRow:
    """A target with its reach; `where` describes its destinations, `used_by` its uses.

    `address` is a channel's address without secrets.
    """

    target: Target
    reach: Reach
    where: list[str]
    used_by: list[str]
    address: str = ""


@dataclass(frozen=True)
class RotationRow:
    """A rotation: the person on duty with their turn, the next person, and all members."""

    row: TargetRow
    people: list[str]
    person: Target | None
    turn: DutyTurn | None
    following: str


@dataclass(frozen=True)
class RouteRow:
    """A route, the reach of its target, and the number of events that match its pattern."""

    route: Route
    reach: Reach
    matches: int


def page_context(now: datetime, *, page: str | None = None, routes: str | None = None) -> Any:
    """Return the template context.

    `page` and `routes` are the numbers of the pages of targets and of routes to show.
    """
    targets = Target.objects.select_related("user").order_by("name")
    listed = Paginator(targets.exclude(**_severity_filter()), SHOWN).get_page(page)
    ways = Route.objects.select_related("target__user").order_by("id")
    routed = Paginator(ways, SHOWN).get_page(routes)
    shown = list(listed.object_list)
    known = directory.read_directory([*shown, *(route.target for route in routed.object_list)])
    rows = _target_rows([one for one in shown if one.kind != Target.Kind.ESCALATION], known, now)
    return {
        "severities": _severity_rows([one for one in shown if one.kind == "escalation"], now),
        "people": [row for row in rows if row.target.kind == "person"],
        "channels": [row for row in rows if row.target.kind == "channel"],
        "rotations": [
            _rotation_row(row, known, now) for row in rows if row.target.kind == "on_call"
        ],
        "routes": [_route_row(route, known, now) for route in routed.object_list],
        "targets_page": listed,
        "routes_page": routed,
    }


def _severity_filter() -> dict[str, Any]:
    return {"name__in": SEVERITIES, "kind": Target.Kind.ESCALATION}


def _severity_rows(others: Sequence[Target], now: datetime) -> list[SeverityRow]:
    present = {one.name: one for one in Target.objects.filter(**_severity_filter())}
    found = [present[name] for name in SEVERITIES if name in present] + [*others]
    ladders = reach.read_ladders([one.name for one in found], now)
    return [SeverityRow(one, ladders[one.name]) for one in found]


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


def _rotation_row(row: TargetRow, known: Directory, now: datetime) -> RotationRow:
    names = [person.name for person in known.members.get(row.target.pk, ())]
    person, turn = known.on_duty(row.target, now)
    following = names[(turn.member + 1) % len(names)] if turn and len(names) > 1 else ""
    return RotationRow(row, names, person, turn, following)


def _route_row(route: Route, known: Directory, now: datetime) -> RouteRow:
    matches = sum(fnmatchcase(event, route.event) for event in MESSAGE_TEMPLATES)
    return RouteRow(route, reach.reach_from(route.target, known, now), matches)
