"""Positions of boxes and lines of the map."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakers.map.layout import BOX_HEIGHT, BOX_WIDTH, arrange_graph

SERVICES = st.sampled_from([f"s{number}" for number in range(14)])
EDGES = st.lists(st.tuples(SERVICES, SERVICES), max_size=40)
A_HOUSE = [
    ("canvas", "core"),
    ("core", "oracle"),
    ("core", "postgresql"),
    ("oracle", "neo4j"),
    ("vision", "postgresql"),
    ("core", "vision"),
    ("worker", "vision"),
]


def test_nothing_to_draw_makes_an_empty_picture():
    layout = arrange_graph([], [])

    assert (layout.boxes, layout.routes) == ({}, {})


def test_chain_stands_from_left_to_right():
    layout = arrange_graph(["a", "b", "c"], [("a", "b"), ("b", "c")])

    assert [layout.boxes[name].layer for name in "abc"] == [0, 1, 2]
    assert layout.boxes["a"].x + BOX_WIDTH < layout.boxes["b"].x
    assert len({layout.boxes[name].y for name in "abc"}) == 1


def test_caller_of_one_deep_service_stands_right_before_it():
    layout = arrange_graph({name for edge in A_HOUSE for name in edge}, A_HOUSE)

    assert layout.boxes["worker"].layer == layout.boxes["vision"].layer - 1 == 1


def test_cycle_shares_a_layer_and_has_both_lines():
    layout = arrange_graph("abc", [("a", "b"), ("b", "a"), ("b", "c")])

    assert layout.boxes["a"].layer == layout.boxes["b"].layer
    assert set(layout.routes) == {("a", "b"), ("b", "a"), ("b", "c")}


def test_two_rows_that_need_not_cross_are_untangled():
    layout = arrange_graph("abcd", [("a", "d"), ("b", "c")])

    left = layout.boxes["a"].y < layout.boxes["b"].y
    right = layout.boxes["d"].y < layout.boxes["c"].y
    assert left == right


def test_line_that_skips_a_layer_crosses_no_box_there():
    layout = arrange_graph({name for edge in A_HOUSE for name in edge}, A_HOUSE)

    path = layout.routes["core", "postgresql"].path
    y = float(path.split(" H")[0].split()[-1])
    beside = [box for box in layout.boxes.values() if box.layer == 2]
    assert beside
    assert all(y < box.y or y > box.y + BOX_HEIGHT for box in beside)


@pytest.mark.parametrize("order", [1, -1])
def test_order_of_what_is_given_changes_nothing(order):
    names = sorted({name for edge in A_HOUSE for name in edge})

    assert arrange_graph(names[::order], A_HOUSE[::order]) == arrange_graph(names, A_HOUSE)


@settings(max_examples=60)
@given(EDGES)
def test_any_graph_is_drawn_whole_within_its_frame(edges):
    names = {name for edge in edges for name in edge}

    layout = arrange_graph(names, edges)

    assert set(layout.boxes) == names
    assert set(layout.routes) == set(edges)
    for box in layout.boxes.values():
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + BOX_WIDTH <= layout.width
        assert box.y + BOX_HEIGHT <= layout.height


@settings(max_examples=60)
@given(EDGES)
def test_boxes_of_a_layer_never_overlap(edges):
    layout = arrange_graph({name for edge in edges for name in edge}, edges)

    layers = {box.layer for box in layout.boxes.values()}
    for layer in layers:
        tops = sorted(box.y for box in layout.boxes.values() if box.layer == layer)
        assert all(lower - upper >= BOX_HEIGHT for upper, lower in pairwise(tops))
