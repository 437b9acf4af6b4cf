"""What the Targets page shows: the escalation matrix, people, channels, rotations and routes."""

from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from controlplane.core.outbox import wordings
from controlplane.core.targets import reach, routing
from controlplane.core.targets.duty import Turn
from controlplane.core.targets.models import Route, Target
from controlplane.core.targets.reach import Reach, Rung
from controlplane.core.targets.resources import masked_url
from controlplane.core.targets.services import used_by

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
    """A target with whom it reaches; `where` are the ways in words, `used_by` what leads to it."""

    target: Target
    reach: Reach
    where: list[str]
    used_by: list[str]
    url: str = ""


@dataclass(frozen=True)
class Rotation:
    """Who is on duty, until when, who is next, and everybody in order."""

    row: Row
    people: list[str]
    person: Target | None
    turn: Turn | None
    following: str


@dataclass(frozen=True)
class Way:
    """A route, whether its target is reached, and how many kinds of message it matches today."""

    route: Route
    reach: Reach
    matches: int


def everything(now: datetime) -> dict[str, Any]:
    """All parts of the page."""
    targets = list(Target.objects.select_related("user").order_by("name")[: SHOWN + 1])
    rows = [_row(target, now) for target in targets[:SHOWN] if target.kind != "escalation"]
    return {
        "severities": _severities(now),
        "people": [row for row in rows if row.target.kind == "person"],
        "channels": [row for row in rows if row.target.kind == "channel"],
        "rotations": [_rotation(row, now) for row in rows if row.target.kind == "on_call"],
        "routes": _routes(now),
        "more": len(targets) > SHOWN,
    }


def _severities(now: datetime) -> list[Severity]:
    """The three severities first, then whatever other escalation there is."""
    found = {one.name: one for one in Target.objects.filter(kind="escalation").order_by("name")}
    names = [name for name in reach.SEVERITIES if name in found]
    names += [name for name in found if name not in reach.SEVERITIES]
    return [Severity(found[name], reach.ladder(name, now)) for name in names]


def _row(target: Target, now: datetime) -> Row:
    reached = reach.reach(target, now)
    return Row(
        target, reached, reach.masked(reached.to), used_by(target), masked_url(target.webhook_url)
    )


def _rotation(row: Row, now: datetime) -> Rotation:
    members = row.target.members.select_related("person").order_by("position")
    names = [member.person.name for member in members]
    person, turn = routing.on_duty(row.target, now)
    following = names[(turn.member + 1) % len(names)] if turn and len(names) > 1 else ""
    return Rotation(row, names, person, turn, following)


def _routes(now: datetime) -> list[Way]:
    routes = Route.objects.select_related("target__user").order_by("id")[:SHOWN]
    return [
        Way(
            route,
            reach.reach(route.target, now),
            sum(fnmatchcase(event, route.event) for event in wordings.WORDINGS),
        )
        for route in routes
    ]
