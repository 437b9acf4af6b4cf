"""Amplification of retries along chains of calls."""

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakers.map.amplification import find_worst_chain


@pytest.mark.parametrize(
    ("attempts", "last", "services", "tries"),
    [
        pytest.param({"ab": 3}, "ab", "ab", 3, id="one hop"),
        pytest.param({"ab": 2, "cb": 4, "bd": 3, "de": 3}, "de", "cbde", 36, id="the worst way"),
        pytest.param({"ab": 1, "bc": 1, "ac": 1, "cd": 2}, "cd", "abcd", 2, id="the longer way"),
        pytest.param({"ab": 2, "ba": 2, "bc": 2}, "bc", "abc", 4, id="a cycle counts once"),
        pytest.param({"aa": 3}, "aa", "aa", 3, id="a service that calls itself"),
        # The services above `c` are first searched on a path that contains `b`.
        pytest.param(
            {"ab": 3, "bc": 2, "cb": 1, "bd": 1, "cd": 3, "de": 1},
            "de",
            "abcde",
            18,
            id="a cycle does not hide a better way",
        ),
    ],
)
def test_tries_multiply_along_the_worst_chain(attempts, last, services, tries):
    chain = find_worst_chain({tuple(edge): count for edge, count in attempts.items()}, *last)

    assert ("".join(chain.services), chain.tries) == (services, tries)
    assert chain.hops == len(services) - 1


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
