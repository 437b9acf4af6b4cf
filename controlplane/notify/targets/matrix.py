"""Contents of the Targets page: escalation matrix, people, channels, rotations and routes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from django.core.paginator import Paginator

from controlplane.core.message_templates import MESSAGE_TEMPLATES, SEVERITIES
from controlplane.notify.models.targets import Route, Target
from controlplane.notify.transports import registry

from . import directory, reach, usage
from .directory import Directory
from .on_call_rotation import Turn
from .reach import Reach, Rung

SHOWN = 200


@dataclass(frozen=True)
class Severity:
    """A row of the matrix; `silent` if none of its steps reaches anybody."""

    target: Target
    rungs: list[Rung]

    @property
    def silent(self) -> bool:
        return not any(rung.reach.to for rung in self.rungs)


@dataclass(frozen=True)
class Row:
    """A target with those it reaches; `where` describes its destinations, `used_by` its uses.

    `address` is a channel's, without secrets.
    """

    target: Target
    reach: Reach
    where: list[str]
    used_by: list[str]
    address: str = ""


@dataclass(frozen=True)
class Rotation:
    """A rotation: the person on duty and their turn, the next one, and all members in order."""

    row: Row
    people: list[str]
    person: Target | None
    turn: Turn | None
    following: str


@dataclass(frozen=True)
class Way:
    """A route, the reach of its target, and the number of known events that it matches."""

    route: Route
    reach: Reach
    matches: int


def everything(now: datetime, *, page: str | None = None, routes: str | None = None) -> Any:
    """Return the template context of the page, with one page each of targets and routes.

    The three severities are on every page. The number of queries does not depend on the number of
    rows.
    """
    targets = Target.objects.select_related("user").order_by("name")
    listed = Paginator(targets.exclude(**_of_a_severity()), SHOWN).get_page(page)
    ways = Route.objects.select_related("target__user").order_by("id")
    routed = Paginator(ways, SHOWN).get_page(routes)
    shown = list(listed.object_list)
    known = directory.read([*shown, *(route.target for route in routed.object_list)])
    rows = _rows([one for one in shown if one.kind != Target.Kind.ESCALATION], known, now)
    return {
        "severities": _severities([one for one in shown if one.kind == "escalation"], now),
        "people": [row for row in rows if row.target.kind == "person"],
        "channels": [row for row in rows if row.target.kind == "channel"],
        "rotations": [_rotation(row, known, now) for row in rows if row.target.kind == "on_call"],
        "routes": [_way(route, known, now) for route in routed.object_list],
        "targets_page": listed,
        "routes_page": routed,
    }


def _of_a_severity() -> dict[str, Any]:
    return {"name__in": SEVERITIES, "kind": Target.Kind.ESCALATION}


def _severities(others: Sequence[Target], now: datetime) -> list[Severity]:
    """Return the three severities, followed by the other escalations of this page."""
    present = {one.name: one for one in Target.objects.filter(**_of_a_severity())}
    found = [present[name] for name in SEVERITIES if name in present] + [*others]
    ladders = reach.ladders([one.name for one in found], now)
    return [Severity(one, ladders[one.name]) for one in found]


def _rows(targets: Sequence[Target], known: Directory, now: datetime) -> list[Row]:
    users = usage.used_by(targets)
    found = []
    for target in targets:
        reached = reach.reached(target, known, now)
        transport = registry.transport_of(target)
        address = transport.shown_address(target) if transport else target.address
        where = registry.describe(reached.to)
        found.append(Row(target, reached, where, users[target.pk], address))
    return found


def _rotation(row: Row, known: Directory, now: datetime) -> Rotation:
    names = [person.name for person in known.members.get(row.target.pk, ())]
    person, turn = known.on_duty(row.target, now)
    following = names[(turn.member + 1) % len(names)] if turn and len(names) > 1 else ""
    return Rotation(row, names, person, turn, following)


def _way(route: Route, known: Directory, now: datetime) -> Way:
    matches = sum(fnmatchcase(event, route.event) for event in MESSAGE_TEMPLATES)
    return Way(route, reach.reached(route.target, known, now), matches)
