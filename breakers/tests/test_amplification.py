"""Amplification of retries along chains of calls."""

from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from breakers.map.amplification import find_worst_chain


def test_hop_alone_is_its_own_chain():
    chain = find_worst_chain({("core", "oracle"): 3}, "core", "oracle")

    assert (list(chain.services), chain.tries, chain.hops) == (["core", "oracle"], 3, 1)


def test_tries_multiply_along_the_worst_way():
    attempts = {
        ("canvas", "core"): 2,
        ("batch", "core"): 4,
        ("core", "oracle"): 3,
        ("oracle", "openai"): 3,
    }

    chain = find_worst_chain(attempts, "oracle", "openai")

    assert list(chain.services) == ["batch", "core", "oracle", "openai"]
    assert chain.tries == 4 * 3 * 3


def test_of_two_ways_alike_the_longer_is_shown():
    attempts = {("a", "b"): 1, ("b", "c"): 1, ("a", "c"): 1, ("c", "d"): 2}

    assert list(find_worst_chain(attempts, "c", "d").services) == ["a", "b", "c", "d"]


def test_cycle_counts_once():
    attempts = {("a", "b"): 2, ("b", "a"): 2, ("b", "c"): 2}

    chain = find_worst_chain(attempts, "b", "c")

    assert (list(chain.services), chain.tries) == (["a", "b", "c"], 4)


def test_service_that_calls_itself_ends_the_chain():
    assert find_worst_chain({("a", "a"): 3}, "a", "a").tries == 3


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")),
        st.integers(1, 5),
        max_size=20,
    )
)
def test_chain_is_a_way_there_is_and_its_product(attempts):
    attempts = {**attempts, ("y", "z"): 2, **{(one, "y"): 2 for one in "ab"}}

    chain = find_worst_chain(attempts, "y", "z")

    product = 1
    for hop in pairwise(chain.services):
        product *= attempts[hop]
    assert product == chain.tries
    assert len(set(chain.services)) == len(chain.services)


def test_way_through_a_cycle_does_not_hide_a_better_one():
    """The services above `c` are first searched on a path that contains `b`."""
    attempts = {
        ("a", "b"): 3, ("b", "c"): 2, ("c", "b"): 1, ("b", "d"): 1, ("c", "d"): 3, ("d", "e"): 1,
    }  # fmt: skip

    chain = find_worst_chain(attempts, "d", "e")

    assert (list(chain.services), chain.tries) == (["a", "b", "c", "d", "e"], 18)


SERVICES = "abcde"


def brute_force(attempts, caller, callee):
    """The most tries over every order of services in which each calls the next."""
    best = attempts.get((caller, callee), 1)
    others = [one for one in SERVICES if one not in (caller, callee)]
    for count in range(1, len(others) + 1):
        for above in permutations(others, count):
            tries = 1
            for hop in pairwise((*above, caller, callee)):
                tries *= attempts.get(hop, 1 if hop == (caller, callee) else 0)
            best = max(best, tries)
    return best


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(SERVICES), st.sampled_from(SERVICES)),
        st.integers(1, 3),
        max_size=20,
    )
)
def test_worst_chain_is_the_worst_there_is(attempts):
    assert find_worst_chain(attempts, "d", "e").tries == brute_force(attempts, "d", "e")


def test_too_many_ways_are_not_all_looked_at():
    everybody = [f"s{number}" for number in range(12)]
    attempts = {(one, other): 2 for one in everybody for other in everybody if one != other}

    chain = find_worst_chain(attempts, "s0", "s1", most=500)

    assert not chain.is_whole
    assert chain.tries > 1
    assert find_worst_chain({("s2", "s0"): 2}, "s0", "s1").is_whole
