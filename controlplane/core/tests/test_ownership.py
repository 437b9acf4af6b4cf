"""The most specific pattern decides on the owner of a resource."""

from time import perf_counter

import pytest

from controlplane.core.ownership import Owners, ResourcePattern, find_problem

OWNERS = Owners(
    [
        ("segment:*", "a"),
        ("segment:fin*", "b"),
        ("segment:finance", "c"),
        ("segment:*nance-eu", "d"),
        ("dependency:core->*", "e"),
        ("stream:a.b*", "f"),
    ]
)


@pytest.mark.parametrize(
    ("resource", "owner"),
    [
        ("segment:x", "a"),
        ("segment:finder", "b"),
        ("segment:finance", "c"),
        ("segment:finance-eu", "d"),
        ("dependency:core->oracle", "e"),
        ("dependency:vision->core", ""),
        ("stream:a.b-c", "f"),
        ("stream:axb", ""),
        ("feature:finance", ""),
        ("", ""),
    ],
)
def test_most_specific_pattern_wins(resource, owner):
    assert OWNERS.owner_of(resource) == owner
    assert OWNERS.owner_of(resource) == owner  # from memory


@pytest.mark.parametrize(
    "text", ["", "segment", "segment:", "unknown:a", "segment:a b", "Segment:a", "segment:a\n"]
)
def test_invalid_patterns(text):
    assert find_problem(text)


@pytest.mark.parametrize(
    "text", ["global:all", "segment:*", "dependency:a->b", "stream:주문", "slo:*"]
)
def test_valid_patterns(text):
    assert not find_problem(text)


def test_wildcards_match_any_characters_and_nothing_else_is_special():
    assert ResourcePattern("slo:a*c").matches("slo:abbc")
    assert not ResourcePattern("slo:a.c").matches("slo:abc")


@pytest.mark.parametrize(
    ("text", "resource", "matches"),
    [
        ("slo:*", "slo:", True),
        ("slo:ab*ba", "slo:aba", False),  # The parts must not overlap.
        ("slo:ab*ba", "slo:abba", True),
        ("slo:a**b", "slo:ab", True),
        ("slo:*a*b*", "slo:xbxaxb", True),
        ("slo:*a*b*", "slo:xbxa", False),
        ("slo:*a*b", "slo:ab-ab", True),
        ("stream:주*문", "stream:주-문", True),
    ],
)
def test_the_parts_of_a_pattern_match_in_their_order(text, resource, matches):
    assert ResourcePattern(text).matches(resource) is matches


def test_a_pattern_of_many_wildcards_is_matched_at_once():
    pattern = ResourcePattern(f"segment:{'*a' * 60}*b")
    began = perf_counter()
    assert not pattern.matches(f"segment:{'a' * 120}")
    assert perf_counter() - began < 0.5


def test_many_patterns_are_searched_quickly():
    owners = Owners((f"segment:team-{index}-*", f"team-{index}") for index in range(10_000))
    began = perf_counter()
    for index in range(200):
        assert owners.owner_of(f"segment:team-{index}-x") == f"team-{index}"
    assert perf_counter() - began < 1
