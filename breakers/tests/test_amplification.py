"""How retries multiply along chains of calls."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from breakers.map.amplification import worst


def test_hop_alone_is_its_own_chain():
    found = worst({("core", "oracle"): 3}, "core", "oracle")

    assert (list(found.services), found.tries, found.hops) == (["core", "oracle"], 3, 1)


def test_tries_multiply_along_the_worst_way():
    attempts = {
        ("canvas", "core"): 2,
        ("batch", "core"): 4,
        ("core", "oracle"): 3,
        ("oracle", "openai"): 3,
    }

    found = worst(attempts, "oracle", "openai")

    assert list(found.services) == ["batch", "core", "oracle", "openai"]
    assert found.tries == 4 * 3 * 3


def test_of_two_ways_alike_the_longer_is_shown():
    attempts = {("a", "b"): 1, ("b", "c"): 1, ("a", "c"): 1, ("c", "d"): 2}

    assert list(worst(attempts, "c", "d").services) == ["a", "b", "c", "d"]


def test_cycle_counts_once():
    attempts = {("a", "b"): 2, ("b", "a"): 2, ("b", "c"): 2}

    found = worst(attempts, "b", "c")

    assert (list(found.services), found.tries) == (["a", "b", "c"], 4)


def test_service_that_calls_itself_ends_the_chain():
    assert worst({("a", "a"): 3}, "a", "a").tries == 3


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")),
        st.integers(1, 5),
        max_size=20,
    )
)
def test_chain_is_a_way_there_is_and_its_product(attempts):
    attempts = {**attempts, ("y", "z"): 2, **{(one, "y"): 2 for one in "ab"}}

    found = worst(attempts, "y", "z")

    product = 1
    for hop in pairwise(found.services):
        product *= attempts[hop]
    assert product == found.tries
    assert len(set(found.services)) == len(found.services)
