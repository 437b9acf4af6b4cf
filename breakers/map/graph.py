"""The dependency map: services, what they depend on, how it stands, and what a failure reaches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from breakers.map.layout import BOX_HEIGHT, BOX_WIDTH, Box, Edge, Layout, Route, arrange
from breakers.models import Dependency, Probe, Service
from breakers.models.registry import Criticality
from breakers.states import dependency_status
from breakers.states.dependency_status import Standing

MAX_DRAWN = 120
MAX_LINES = 240
MAX_LINES_AROUND = 80
HOPS = 2
AWAY = "away"
GRAVITY = {name: place for place, name in enumerate(Criticality.values)}
HEAT = {
    dependency_status.OPEN: 0,
    dependency_status.HALF_OPEN: 1,
    dependency_status.CLOSED: 2,
    dependency_status.UNKNOWN: 3,
}
"""Of two that guard a service the lower one shows."""
TROUBLED = 2
MAX_LINE_LENGTH = 15
"""Characters of a name beside its icon."""


Beside = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Graph:
    """Every dependency there is: `down` leads from callers to callees, `up` back."""

    criticality: Mapping[Edge, str]
    services: set[str]
    down: Beside
    up: Beside


@dataclass(frozen=True)
class Line:
    """A dependency as a line. `relation` to the service in focus is `up` (towards who is hit when
    that fails), `down` (towards what that needs) or empty."""

    standing: Standing
    route: Route
    relation: str

    @property
    def dependency(self) -> Dependency:
        return self.standing.dependency

    @property
    def mark_x(self) -> str:
        return f"{self.route.mark[0]:.1f}"

    @property
    def mark_y(self) -> str:
        return f"{self.route.mark[1]:.1f}"


@dataclass(frozen=True)
class Node:
    """A service as a box. `state` is the worst of the breakers that guard it, or `away`."""

    slug: str
    name: str
    kind: str
    state: str
    box: Box
    relation: str
    calls: int
    called_by: int

    width = BOX_WIDTH
    height = BOX_HEIGHT

    @property
    def lines(self) -> tuple[str, str]:
        """The name in two lines, the second one mostly empty: what is told apart only by the end of
        a long name, such as `PostgreSQL (primary)`, must not look alike."""
        if len(self.name) <= MAX_LINE_LENGTH:
            return self.name, ""
        head, _, tail = self.name[: MAX_LINE_LENGTH + 1].rpartition(" ")
        if not head:
            return _cut(self.name), ""
        return head, _cut(tail + self.name[MAX_LINE_LENGTH + 1 :])


@dataclass(frozen=True)
class Blast:
    """What is reached from the service in focus: `hit` depends on it, nearest first, `gravely` by
    critical or high dependencies all the way; `needs` is what it depends on itself."""

    hit: Sequence[str]
    gravely: Sequence[str]
    needs: Sequence[str]


@dataclass(frozen=True)
class Picture:
    """What the page shows. `drawn` is False where there are too many services to draw at once and
    none is in focus."""

    services: Sequence[str]
    drawn: bool
    focus: str = ""
    blast: Blast | None = None
    nodes: Sequence[Node] = ()
    lines: Sequence[Line] = ()
    width: float = 0
    height: float = 0
    left_out: int = 0


def picture(focus: str, now: datetime) -> Picture:
    """The map, around `focus` if it is a service that depends on something or is depended on."""
    graph = _graph()
    names = graph.services
    chosen = focus if focus in names else ""
    is_small = len(names) <= MAX_DRAWN and len(graph.criticality) <= MAX_LINES
    if not is_small and not chosen:
        return Picture(services=sorted(names), drawn=False)
    blast = _blast(graph, chosen) if chosen else None
    shown = names if is_small else _around(graph, chosen)
    edges = [edge for edge in graph.criticality if shown.issuperset(edge)]
    layout = arrange(shown, edges)
    stand = _standing(shown, now)
    lines = [
        Line(stand[edge], route, _side(blast, chosen, edge))
        for edge, route in sorted(layout.routes.items())
        if edge in stand
    ]
    return Picture(
        services=sorted(names),
        drawn=True,
        focus=chosen,
        blast=blast,
        nodes=_nodes(layout, lines, blast, chosen),
        # What is worst is drawn last, on top of the others.
        lines=sorted(lines, key=worst_first, reverse=True),
        width=layout.width,
        height=layout.height,
        left_out=len(names) - len(shown),
    )


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LINE_LENGTH else f"{text[: MAX_LINE_LENGTH - 1]}…"


def worst_first(line: Line) -> tuple[int, int, str]:
    # As on the board: what is not reported is no better than what is closed.
    return (
        min(HEAT[line.standing.state], TROUBLED),
        GRAVITY[line.dependency.criticality],
        line.dependency.name,
    )


def beside(edges: Iterable[Edge]) -> Beside:
    """Where the edges lead from each service."""
    found: dict[str, list[str]] = {}
    for source, target in edges:
        found.setdefault(source, []).append(target)
    return found


def reached(after: Beside, start: str, *, hops: int | None = None) -> dict[str, int]:
    """What can be reached from there, with the number of hops, nearest first."""
    found = {start: 0}
    rim, distance = [start], 0
    while rim and (hops is None or distance < hops):
        distance += 1
        rim = sorted({one for name in rim for one in after.get(name, ())} - found.keys())
        found |= dict.fromkeys(rim, distance)
    del found[start]
    return found


def _graph() -> Graph:
    rows = Dependency.objects.registered().values_list("caller", "callee", "criticality")
    criticality = {(caller, callee): how for caller, callee, how in rows}
    return Graph(
        criticality=criticality,
        services={name for edge in criticality for name in edge},
        down=beside(criticality),
        up=beside((callee, caller) for caller, callee in criticality),
    )


def _blast(graph: Graph, focus: str) -> Blast:
    grave = {Criticality.CRITICAL.value, Criticality.HIGH.value}
    gravely = (
        (callee, caller) for (caller, callee), how in graph.criticality.items() if how in grave
    )
    return Blast(
        hit=[*reached(graph.up, focus)],
        gravely=[*reached(beside(gravely), focus)],
        needs=[*reached(graph.down, focus)],
    )


def _around(graph: Graph, focus: str) -> set[str]:
    """The service and what is two hops away either way, nearest first, as much of it as can be
    drawn and read."""
    near = {**reached(graph.down, focus, hops=HOPS), **reached(graph.up, focus, hops=HOPS)}
    shown, lines = {focus}, 0
    for name in sorted(near, key=lambda name: (near[name], name))[: MAX_DRAWN - 1]:
        lines += sum(one in shown for one in graph.down.get(name, ()))
        lines += sum(one in shown for one in graph.up.get(name, ()))
        if lines > MAX_LINES_AROUND:
            break
        shown.add(name)
    return shown


def _standing(shown: Iterable[str], now: datetime) -> dict[Edge, Standing]:
    names = [*shown]
    rows = (
        Dependency.objects.registered()
        .filter(caller__in=names, callee__in=names)
        .only("caller", "callee", "criticality", "version", "removed_at")
    )
    return {
        (one.dependency.caller, one.dependency.callee): one
        for one in dependency_status.of(list(rows), now)
    }


def _side(blast: Blast | None, focus: str, edge: Edge) -> str:
    if blast is None:
        return ""
    caller, callee = edge
    if caller in blast.hit and (callee == focus or callee in blast.hit):
        return "up"
    return "down" if callee in blast.needs and (caller == focus or caller in blast.needs) else ""


def _nodes(layout: Layout, lines: Sequence[Line], blast: Blast | None, focus: str) -> list[Node]:
    known = Service.objects.in_bulk([*layout.boxes])
    away = set(
        Probe.objects.filter(is_away=True, service__in=known).values_list("service", flat=True)
    )
    calls: dict[str, int] = {}
    guards: dict[str, list[str]] = {}
    for line in lines:
        caller, callee = line.dependency.caller, line.dependency.callee
        calls[caller] = calls.get(caller, 0) + 1
        guards.setdefault(callee, []).append(line.standing.state)
    nodes = []
    for slug, box in sorted(layout.boxes.items(), key=lambda one: (one[1].layer, one[1].row)):
        states = guards.get(slug, [])
        state = min(states, key=lambda state: HEAT[state], default="")
        service = known.get(slug)
        nodes.append(
            Node(
                slug=slug,
                name=service.name if service else slug,
                kind=service.kind if service else "",
                state=AWAY if slug in away else state,
                box=box,
                relation=_place(blast, focus, slug),
                calls=calls.get(slug, 0),
                called_by=len(states),
            )
        )
    return nodes


def _place(blast: Blast | None, focus: str, slug: str) -> str:
    if blast is None:
        return ""
    if slug == focus:
        return "focus"
    if slug in blast.hit:
        return "up"
    return "down" if slug in blast.needs else "off"
