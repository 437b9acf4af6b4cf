"""The dependency map: a graph of services and dependencies with states and blast radius."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from breakers.counts import BreakerCounts
from breakers.map.box_texts import BoxText, wrap_name
from breakers.map.layout import (
    BOX_HEIGHT,
    BOX_WIDTH,
    Edge,
    MapBox,
    MapLayout,
    MapRoute,
    arrange_graph,
)
from breakers.models import Dependency, Probe, Service
from breakers.models.registry import Criticality
from breakers.states import board, dependency_status
from breakers.states.dependency_status import DependencyStatus
from breakers.states.evidence import rank_dependencies
from breakers.states.recent_calls import find_failing, load_recent_counts

Neighbors = Mapping[str, Sequence[str]]
"""Services by a service that calls them, or that they call."""

MAX_DRAWN = 120
MAX_LINES = 240
MAX_LINES_AROUND = 80
HOPS = 2
AWAY = "away"
GRAVE = {Criticality.CRITICAL.value, Criticality.HIGH.value}
WORST_STATES = (
    dependency_status.OPEN,
    dependency_status.HALF_OPEN,
    board.FAILING,
    dependency_status.CLOSED,
    dependency_status.UNKNOWN,
)
"""States of lines, the worst first."""
TROUBLED_STATES = WORST_STATES[:3]
ARROWS = ("calm", "warn", "open")


@dataclass(frozen=True)
class CallGraph:
    """All dependencies: their `criticality` by caller and callee, and the neighbors of services."""

    criticality: Mapping[Edge, str]
    callees: Neighbors
    callers: Neighbors


@dataclass(frozen=True)
class MapLine:
    """A dependency drawn as a line.

    `relation` is `up` if the focused service's failure reaches this caller, `down` if the focused
    service needs this callee, otherwise empty. `recent` are the calls of the last five minutes;
    `calls_fail` is true if they show the dependency as failing. `rank` orders the lines like the
    board, 1 is the most urgent.
    """

    status: DependencyStatus
    route: MapRoute
    relation: str
    recent: BreakerCounts
    calls_fail: bool
    rank: int

    @property
    def dependency(self) -> Dependency:
        return self.status.dependency

    @property
    def recent_failure_share(self) -> float | None:
        """Failed and rejected calls of the last five minutes, 0 to 1; None without calls."""
        return self.recent.caller_failure_share

    @property
    def state(self) -> str:
        """The breaker's state, or `failing` if it is closed and calls fail."""
        is_failing = self.calls_fail and self.status.state == dependency_status.CLOSED
        return board.FAILING if is_failing else self.status.state

    @property
    def is_marked(self) -> bool:
        """True if the line has an icon: an override, or calls that fail or are rejected."""
        return self.status.override is not None or self.state in TROUBLED_STATES

    @property
    def arrow(self) -> str:
        """The color of the arrowhead: one of `ARROWS`."""
        return {"open": "open", "half_open": "warn", board.FAILING: "warn"}.get(self.state, "calm")


@dataclass(frozen=True)
class MapNode:
    """A service drawn as a box.

    `state` is the worst state of the lines from its callers, or `away` if its probe fails.
    """

    slug: str
    name: str
    kind: str
    state: str
    box: MapBox
    relation: str
    calls: int
    called_by: int

    width = BOX_WIDTH
    height = BOX_HEIGHT

    @property
    def is_troubled(self) -> bool:
        return self.state == AWAY or self.state in TROUBLED_STATES

    @property
    def lines(self) -> Sequence[BoxText]:
        """The name in one line or two."""
        first, second = wrap_name(self.name)
        if not second:
            return [BoxText(first, 27)]
        return [BoxText(first, 20), BoxText(second, 35)]

    @property
    def text_y(self) -> int:
        """The position of the text below the name."""
        return 50 if len(self.lines) > 1 else 43


@dataclass(frozen=True)
class MapBlastRadius:
    """The blast radius of the service on which the map is focused.

    `hit` are the services that depend on the focused one, directly or indirectly, nearest first.
    `gravely` are the services in `hit` that depend on it by critical and high dependencies alone.
    `needs` are the services that the focused one depends on.
    """

    hit: Sequence[str]
    gravely: Sequence[str]
    needs: Sequence[str]


@dataclass(frozen=True)
class DependencyMap:
    """The content of the map page; `drawn` is False if there are too many services to draw.

    `lines` are in the order of the board, the most urgent first.
    """

    services: Sequence[str]
    drawn: bool
    focus: str = ""
    blast: MapBlastRadius | None = None
    nodes: Sequence[MapNode] = ()
    lines: Sequence[MapLine] = ()
    width: float = 0
    height: float = 0
    left_out: int = 0


def draw_map(focus: str, now: datetime) -> DependencyMap:
    """Return the map of all services, or of the neighborhood of `focus` if they are too many."""
    graph = _load_graph()
    names = graph.callees.keys() | graph.callers.keys()
    chosen = focus if focus in names else ""
    is_small = len(names) <= MAX_DRAWN and len(graph.criticality) <= MAX_LINES
    if not is_small and not chosen:
        return DependencyMap(services=sorted(names), drawn=False)
    blast = _blast_radius(graph, chosen) if chosen else None
    shown = names if is_small else _find_neighborhood(graph, chosen)
    layout = arrange_graph(shown, [edge for edge in graph.criticality if shown.issuperset(edge)])
    statuses = _load_statuses(shown, now)
    ids = [status.dependency.pk for status in statuses.values()]
    recent, failing = load_recent_counts(ids, now), find_failing(now)
    ranks = rank_dependencies(ids, failing, now)
    lines = [
        MapLine(
            status,
            route,
            _line_relation(blast, chosen, edge),
            recent.get(status.dependency.pk, BreakerCounts()),
            status.dependency.pk in failing,
            ranks.get(status.dependency.pk, len(ranks)),
        )
        for edge, route in sorted(layout.routes.items())
        if (status := statuses.get(edge))
    ]
    return DependencyMap(
        services=sorted(names),
        drawn=True,
        focus=chosen,
        blast=blast,
        nodes=_build_nodes(layout, lines, blast, chosen),
        lines=sorted(lines, key=lambda line: line.rank),
        width=layout.width,
        height=layout.height,
        left_out=len(names) - len(shown),
    )


def find_reachable(next_to: Neighbors, start: str, *, hops: int | None = None) -> dict[str, int]:
    """Return the services within `hops` calls from `start`, nearest first, with their distances."""
    found, nearest, distance = {start: 0}, [start], 0
    while nearest and distance != hops:
        distance += 1
        nearest = sorted({one for name in nearest for one in next_to.get(name, ())} - found.keys())
        found.update(dict.fromkeys(nearest, distance))
    del found[start]
    return found


def _load_graph() -> CallGraph:
    rows = Dependency.objects.registered().values_list("caller", "callee", "criticality")
    callees: dict[str, list[str]] = defaultdict(list)
    callers: dict[str, list[str]] = defaultdict(list)
    criticality = {}
    for caller, callee, weight in rows:
        callees[caller].append(callee)
        callers[callee].append(caller)
        criticality[caller, callee] = weight
    return CallGraph(criticality, callees, callers)


def _blast_radius(graph: CallGraph, focus: str) -> MapBlastRadius:
    hit = find_reachable(graph.callers, focus)
    grave_callers = {
        callee: [one for one in graph.callers[callee] if graph.criticality[one, callee] in GRAVE]
        for callee in (focus, *hit)
        if callee in graph.callers
    }
    return MapBlastRadius(
        hit=[*hit],
        gravely=[*find_reachable(grave_callers, focus)],
        needs=[*find_reachable(graph.callees, focus)],
    )


def _find_neighborhood(graph: CallGraph, focus: str) -> set[str]:
    """Return the focused service and its neighbors within two hops, as many as stay legible."""
    near = {
        **find_reachable(graph.callees, focus, hops=HOPS),
        **find_reachable(graph.callers, focus, hops=HOPS),
    }
    shown, lines = {focus}, 0
    for name in sorted(near, key=lambda name: (near[name], name))[: MAX_DRAWN - 1]:
        lines += sum(one in shown for one in graph.callees.get(name, ()))
        lines += sum(one in shown for one in graph.callers.get(name, ()))
        if lines > MAX_LINES_AROUND:
            break
        shown.add(name)
    return shown


def _load_statuses(shown: Iterable[str], now: datetime) -> dict[Edge, DependencyStatus]:
    names = [*shown]
    rows = (
        Dependency.objects.registered()
        .filter(caller__in=names, callee__in=names)
        .only("caller", "callee", "criticality", "version", "removed_at")
    )
    return {
        (one.dependency.caller, one.dependency.callee): one
        for one in dependency_status.load_statuses(list(rows), now)
    }


def _line_relation(blast: MapBlastRadius | None, focus: str, edge: Edge) -> str:
    if blast is None:
        return ""
    caller, callee = edge
    if caller in blast.hit and (callee == focus or callee in blast.hit):
        return "up"
    return "down" if callee in blast.needs and (caller == focus or caller in blast.needs) else ""


def _build_nodes(
    layout: MapLayout, lines: Sequence[MapLine], blast: MapBlastRadius | None, focus: str
) -> list[MapNode]:
    known = Service.objects.in_bulk([*layout.boxes])
    probes = Probe.objects.filter(is_away=True, service__in=known)
    away = set(probes.values_list("service", flat=True))
    calls = Counter(line.dependency.caller for line in lines)
    guards: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        guards[line.dependency.callee].append(line.state)
    nodes = []
    for slug, box in sorted(layout.boxes.items(), key=lambda one: (one[1].layer, one[1].row)):
        states = guards[slug]
        state = min(states, key=WORST_STATES.index, default="")
        service = known.get(slug)
        nodes.append(
            MapNode(
                slug=slug,
                name=service.name if service else slug,
                kind=service.kind if service else "",
                state=AWAY if slug in away else state,
                box=box,
                relation=_node_relation(blast, focus, slug),
                calls=calls[slug],
                called_by=len(states),
            )
        )
    return nodes


def _node_relation(blast: MapBlastRadius | None, focus: str, slug: str) -> str:
    if blast is None:
        return ""
    if slug == focus:
        return "focus"
    if slug in blast.hit:
        return "up"
    return "down" if slug in blast.needs else "off"
