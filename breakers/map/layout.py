"""Layered layout (Sugiyama) of the dependency map.

Pure. Callers are left of their callees: the layers are the topological generations of the graph,
each cycle condensed to one node. A line that skips a layer gets a spot in it, so that it crosses no
box. Several sweeps order the spots of a layer by the mean position of their neighbors; the order
with the fewest crossings is kept.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx as nx

Edge = tuple[str, str]
Point = tuple[float, float]
Spot = str | tuple[str, str, int]
"""A service, or the point where a line (caller, callee) passes a layer."""

BOX_WIDTH, BOX_HEIGHT = 176, 58
LAYER_GAP, ROW_GAP = 84, 22
PASS_HEIGHT = 14
MARGIN = 14
SWEEPS = 6
LOOP_WIDTH = 44


@dataclass(frozen=True)
class MapBox:
    """Position of a service: upper left corner, and layer and row counted from 0."""

    x: float
    y: float
    layer: int
    row: int

    @property
    def middle(self) -> float:
        return self.y + BOX_HEIGHT / 2


@dataclass(frozen=True)
class MapRoute:
    """A dependency's line as an SVG path; the icon of its state is drawn at the point `mark`."""

    path: str
    mark: Point


@dataclass(frozen=True)
class MapLayout:
    width: float
    height: float
    boxes: Mapping[str, MapBox]
    routes: Mapping[Edge, MapRoute]


def arrange_graph(services: Iterable[str], edges: Iterable[Edge]) -> MapLayout:
    """Return the layout of a graph; equal graphs get equal layouts."""
    import networkx as nx  # Large: loaded by the first page that needs it.

    graph = nx.DiGraph()
    graph.add_nodes_from(sorted(set(services)))
    graph.add_edges_from(sorted(set(edges)))
    layers = _assign_layers(graph)
    rows, links = _place_spots(graph, layers)
    rows = _reduce_crossings(rows, links)
    middles = _place_rows(rows, links)
    boxes = {
        spot: MapBox(_layer_x(layer), middles[spot] - BOX_HEIGHT / 2, layer, row)
        for layer, spots in enumerate(rows)
        for row, spot in enumerate(one for one in spots if isinstance(one, str))
        if isinstance(spot, str)
    }
    height = max((box.y + BOX_HEIGHT for box in boxes.values()), default=0) + MARGIN
    has_loop = any(layers[a] == layers[b] == len(rows) - 1 for a, b in graph.edges)
    width = _layer_x(len(rows)) - LAYER_GAP + MARGIN + (LOOP_WIDTH if has_loop else 0)
    routes = _build_routes(graph, layers, boxes, middles)
    lowest = max((middle for middle in middles.values()), default=0) + MARGIN
    return MapLayout(max(width, 2 * MARGIN), max(height, lowest), boxes, routes)


def _assign_layers(graph: "nx.DiGraph[str]") -> dict[str, int]:
    import networkx as nx

    whole = nx.condensation(graph)
    found = {
        group: layer
        for layer, groups in enumerate(nx.topological_generations(whole))
        for group in groups
    }
    for group in whole:
        if whole.in_degree(group) == 0 and whole.out_degree(group):
            found[group] = min(found[after] for after in whole.successors(group)) - 1
    return {name: found[whole.graph["mapping"][name]] for name in graph}


def _place_spots(
    graph: "nx.DiGraph[str]", layers: Mapping[str, int]
) -> tuple[list[list[Spot]], "nx.DiGraph[Spot]"]:
    """Return the spots of each layer, unordered, and a graph that links them along the lines.

    A spot is a box, or the place where a line passes through a layer.
    """
    import networkx as nx

    rows: list[list[Spot]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    for name in graph:
        rows[layers[name]].append(name)
    links: nx.DiGraph[Spot] = nx.DiGraph()
    links.add_nodes_from(graph)
    for caller, callee in graph.edges:
        chain = _spot_chain(caller, callee, layers)
        for layer, spot in enumerate(chain[1:-1], start=layers[caller] + 1):
            rows[layer].append(spot)
        if layers[caller] < layers[callee]:
            links.add_edges_from(pairwise(chain))
    return rows, links


def _spot_chain(caller: str, callee: str, layers: Mapping[str, int]) -> list[Spot]:
    between = range(layers[caller] + 1, layers[callee])
    return [caller, *((caller, callee, layer) for layer in between), callee]


def _reduce_crossings(rows: list[list[Spot]], links: "nx.DiGraph[Spot]") -> list[list[Spot]]:
    best, fewest = rows, _count_crossings(rows, links)
    present = rows
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        order = range(1, len(rows)) if forward else range(len(rows) - 2, -1, -1)
        present = [list(row) for row in present]
        for layer in order:
            beside = present[layer - 1 if forward else layer + 1]
            place = {spot: at for at, spot in enumerate(beside)}
            near = links.pred if forward else links.succ
            present[layer] = _sort_by_mean(present[layer], near, place)
        crossings = _count_crossings(present, links)
        if crossings < fewest:
            best, fewest = present, crossings
    return best


def _sort_by_mean(
    row: list[Spot], near: Mapping[Spot, Iterable[Spot]], place: Mapping[Spot, int]
) -> list[Spot]:
    def mean(at: int) -> float:
        places = [place[spot] for spot in near[row[at]] if spot in place]
        return sum(places) / len(places) if places else at

    return [row[at] for at in sorted(range(len(row)), key=lambda at: (mean(at), at))]


def _count_crossings(rows: Sequence[Sequence[Spot]], links: "nx.DiGraph[Spot]") -> int:
    count = 0
    for row, beside in pairwise(rows):
        place = {spot: at for at, spot in enumerate(beside)}
        passed: list[int] = []
        for spot in row:
            targets = sorted(place[one] for one in links.successors(spot))
            count += sum(len(passed) - bisect_right(passed, target) for target in targets)
            for target in targets:
                insort(passed, target)
    return count


def _place_rows(rows: Sequence[Sequence[Spot]], links: "nx.DiGraph[Spot]") -> dict[Spot, float]:
    """Return the vertical center of each spot, close to the mean of its neighbors."""
    middles: dict[Spot, float] = {}
    for row in rows:
        total = sum(_spot_height(spot) for spot in row)
        middles |= _spread_row(row, dict.fromkeys(row, 0.0), -total / 2)
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wished = {}
            for spot in row:
                places = [middles[one] for one in (*links.pred[spot], *links.succ[spot])]
                wished[spot] = sum(places) / len(places) if places else middles[spot]
            middles |= _spread_row(row, wished, None)
    top = min((middle - _spot_height(spot) / 2 for spot, middle in middles.items()), default=0)
    return {spot: round(middle - top + MARGIN, 1) for spot, middle in middles.items()}


def _spread_row(
    row: Sequence[Spot], wished: Mapping[Spot, float], start: float | None
) -> dict[Spot, float]:
    """Return vertical centers close to `wished`, moved apart where spots would overlap."""
    found: dict[Spot, float] = {}
    least = start
    for spot in row:
        half = _spot_height(spot) / 2
        place = wished[spot] if start is None else least + half  # type: ignore[operator]
        if least is not None:
            place = max(place, least + half)
        found[spot] = place
        least = place + half
    if start is not None or not found:
        return found
    pushed = sum(found[spot] - wished[spot] for spot in row) / len(found)
    return {spot: place - pushed for spot, place in found.items()}


def _spot_height(spot: Spot) -> float:
    return (BOX_HEIGHT if isinstance(spot, str) else PASS_HEIGHT) + ROW_GAP


def _layer_x(layer: int) -> float:
    return MARGIN + layer * (BOX_WIDTH + LAYER_GAP)


def _build_routes(
    graph: "nx.DiGraph[str]",
    layers: Mapping[str, int],
    boxes: Mapping[str, MapBox],
    middles: Mapping[Spot, float],
) -> dict[Edge, MapRoute]:
    chains: dict[Edge, list[Spot]] = {
        (caller, callee): _spot_chain(caller, callee, layers) for caller, callee in graph.edges
    }
    begins = _assign_ports(chains, boxes, middles, end=0)
    ends = _assign_ports(chains, boxes, middles, end=-1)
    routes = {}
    for edge, chain in chains.items():
        caller, callee = edge
        if layers[caller] >= layers[callee]:
            routes[edge] = _draw_loop(boxes[caller], begins[edge], ends[edge])
            continue
        points: list[Point] = [(boxes[caller].x + BOX_WIDTH, begins[edge])]
        for layer, spot in enumerate(chain[1:-1], start=layers[caller] + 1):
            left = _layer_x(layer)
            points += [(left, middles[spot]), (left + BOX_WIDTH, middles[spot])]
        points.append((boxes[callee].x, ends[edge]))
        routes[edge] = _draw_line(points)
    return routes


def _assign_ports(
    chains: Mapping[Edge, Sequence[Spot]],
    boxes: Mapping[str, MapBox],
    middles: Mapping[Spot, float],
    *,
    end: int,
) -> dict[Edge, float]:
    """Return the y coordinates of the lines at their callers (`end` 0) or at their callees (-1)."""
    by_box: dict[str, list[Edge]] = {}
    for edge in chains:
        by_box.setdefault(edge[end], []).append(edge)
    found = {}
    for name, lines in by_box.items():
        towards = 1 if end == 0 else -2
        lines.sort(key=lambda edge: (middles[chains[edge][towards]], edge))
        for number, edge in enumerate(lines, start=1):
            found[edge] = round(boxes[name].y + BOX_HEIGHT * number / (len(lines) + 1), 1)
    return found


def _draw_line(points: Sequence[Point]) -> MapRoute:
    (x, y), *rest = points
    parts = [f"M{x:g} {y:g}"]
    mark = points[0]
    for number, (to_x, to_y) in enumerate(rest):
        if number % 2:
            parts.append(f"H{to_x:g}")
        else:
            half = (x + to_x) / 2
            parts.append(f"C{half:g} {y:g} {half:g} {to_y:g} {to_x:g} {to_y:g}")
            mark = (half, round((y + to_y) / 2, 1))
        x, y = to_x, to_y
    return MapRoute(" ".join(parts), mark)


def _draw_loop(box: MapBox, begin: float, end: float) -> MapRoute:
    right = box.x + BOX_WIDTH
    out = right + LOOP_WIDTH
    path = f"M{right:g} {begin:g} C{out:g} {begin:g} {out:g} {end:g} {right:g} {end:g}"
    return MapRoute(path, (right + 0.75 * LOOP_WIDTH, round((begin + end) / 2, 1)))
