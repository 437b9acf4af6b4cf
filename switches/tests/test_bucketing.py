"""Bucketing, compared exactly with figures computed by other programs."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switches.bucketing import BUCKETS, admits, basis_points, bucket

# Made with `printf '%s' salt:key | sha256sum`, its first 16 digits taken modulo 10000 by bc.
VECTORS = [
    ("a3f1", "user-42", 7580),
    ("a3f1", "", 9761),
    ("", "u1", 9686),
    ("salt", "사용자-7", 5651),
    ("s", "a:b", 71),
    ("s", "é", 2558),
    ("0123456789abcdef0123456789abcdef", "u1", 1094),
]
percents = st.integers(0, BUCKETS).map(lambda points: Decimal(points) / 100)


def no_draw() -> int:
    raise AssertionError("a call with a targeting key is not left to chance")


@pytest.mark.parametrize(("salt", "key", "expected"), VECTORS)
def test_known_salt_and_key_fall_into_the_published_bucket(
    salt: str, key: str, expected: int
) -> None:
    assert bucket(salt, key) == expected


def test_key_just_under_its_percentage_is_in_and_at_it_is_out() -> None:
    assert admits(Decimal("10.95"), "0123456789abcdef0123456789abcdef", "u1", no_draw)
    assert not admits(Decimal("10.94"), "0123456789abcdef0123456789abcdef", "u1", no_draw)


@given(st.text(), st.text(), percents, percents)
def test_growing_share_keeps_whoever_is_in(
    salt: str, key: str, one: Decimal, other: Decimal
) -> None:
    smaller, larger = sorted((one, other))
    if admits(smaller, salt, key, no_draw):
        assert admits(larger, salt, key, no_draw)


@given(st.text(), st.text())
def test_nobody_is_in_at_zero_and_everybody_at_a_hundred(salt: str, key: str) -> None:
    assert not admits(Decimal(0), salt, key, no_draw)
    assert admits(Decimal(100), salt, key, no_draw)


@given(percents)
def test_every_percentage_of_two_decimals_is_an_exact_number_of_buckets(percent: Decimal) -> None:
    assert basis_points(percent) == Fraction(percent) * 100


@pytest.mark.parametrize("wrong", ["-0.01", "100.01", "12.345", "0.001"])
def test_percentage_out_of_range_or_too_fine_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="not a percentage"):
        basis_points(Decimal(wrong))


def test_call_without_a_key_draws_afresh_every_time() -> None:
    draws = iter([0, 1249, 1250, 9999])
    responses = [admits(Decimal("12.50"), "salt", None, lambda: next(draws)) for _ in range(4)]
    assert responses == [True, True, False, False]


def test_share_of_many_keys_is_near_the_percentage() -> None:
    let_in = sum(admits(Decimal(25), "episode-1", f"user-{n}", no_draw) for n in range(20_000))
    # Five standard deviations of a binomial with n = 20000, p = 0.25.
    assert abs(let_in - 5000) < 307
