"""The chi-square tail, compared with tables and an integral; results on arms."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switches.trips import srm

# Upper critical values, from the table in NIST's e-Handbook of Statistical Methods, 1.3.6.7.4.
PUBLISHED = [
    (1, 0.10, 2.706), (1, 0.05, 3.841), (1, 0.025, 5.024), (1, 0.01, 6.635), (1, 0.001, 10.828),
    (2, 0.10, 4.605), (2, 0.05, 5.991), (2, 0.01, 9.210), (2, 0.001, 13.816),
    (3, 0.05, 7.815), (3, 0.01, 11.345), (3, 0.001, 16.266),
    (4, 0.05, 9.488), (4, 0.001, 18.467), (5, 0.05, 11.070), (5, 0.001, 20.515),
    (9, 0.05, 16.919), (9, 0.001, 27.877), (10, 0.05, 18.307), (10, 0.001, 29.588),
    (29, 0.05, 42.557), (30, 0.01, 50.892), (50, 0.05, 67.505), (50, 0.001, 86.661),
    (99, 0.05, 123.225), (100, 0.05, 124.342), (100, 0.001, 149.449),
]  # fmt: skip


def integral(chi_square, freedom, steps=20_000):
    """Return the tail by Simpson's rule over the density, with x = t², smooth at zero."""
    begin, end = math.sqrt(chi_square), math.sqrt(chi_square + 60 * math.sqrt(freedom) + 200)
    scale = freedom / 2 * math.log(2) + math.lgamma(freedom / 2)

    def density(t):
        if t == 0:
            return 2 * math.exp(-scale) if freedom == 1 else 0.0
        return 2 * math.exp((freedom - 1) * math.log(t) - t * t / 2 - scale)

    width = (end - begin) / steps
    points = [density(begin + place * width) for place in range(steps + 1)]
    return (
        width
        / 3
        * (points[0] + points[-1] + 4 * math.fsum(points[1:-1:2]) + 2 * math.fsum(points[2:-1:2]))
    )


def arms(*counts, expected=None):
    expected = expected or [1] * len(counts)
    return [
        srm.Arm(f"arm{place}", Fraction(str(share)), count)
        for place, (share, count) in enumerate(zip(expected, counts, strict=True))
    ]


@pytest.mark.parametrize(("freedom", "p_value", "critical"), PUBLISHED)
def test_published_critical_value_has_its_probability(freedom, p_value, critical):
    # The table is rounded to three decimals.
    assert srm.chi_square_survival(critical + 0.0006, freedom) <= p_value
    assert srm.chi_square_survival(critical - 0.0006, freedom) >= p_value


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 8, 21, 22, 63, 98, 99])
@pytest.mark.parametrize("share", [0.01, 0.3, 1, 2.5, 6])
def test_tail_is_the_integral_of_the_density(freedom, share):
    chi_square = freedom * share

    assert srm.chi_square_survival(chi_square, freedom) == pytest.approx(
        integral(chi_square, freedom), rel=1e-9, abs=1e-13
    )


def test_far_tail_keeps_its_digits():
    # erfc(10·√2⁻¹…): 2·(1 − Φ(10)) = 1.523970604832e-23, and e^-50 for two degrees of freedom.
    assert srm.chi_square_survival(100, 1) == pytest.approx(1.523970604832105e-23, rel=1e-12)
    assert srm.chi_square_survival(100, 2) == pytest.approx(math.exp(-50), rel=1e-13)


@pytest.mark.parametrize("freedom", [1, 2, 99, 1000, 100_001])
@pytest.mark.parametrize("chi_square", [0.0, 5e-324, 1e-12, 1e6, 1e15, 1e300, math.inf])
def test_extremes_stay_probabilities(freedom, chi_square):
    assert 0 <= srm.chi_square_survival(chi_square, freedom) <= 1


def test_with_many_degrees_of_freedom_the_middle_is_near_one_half():
    assert srm.chi_square_survival(100_000, 100_000) == pytest.approx(0.49940, abs=1e-4)


@given(
    st.integers(1, 200),
    st.floats(0, 2000, allow_nan=False),
    st.floats(0, 2000, allow_nan=False),
)
def test_tail_never_grows(freedom, one, other):
    low, high = sorted((one, other))

    assert srm.chi_square_survival(high, freedom) <= srm.chi_square_survival(low, freedom) * (
        1 + 1e-12
    )


@given(st.integers(1, 100), st.floats(0, 500, allow_nan=False))
def test_two_more_degrees_of_freedom_add_one_term(freedom, chi_square):
    """Q(k+2) = Q(k) + (x/2)^(k/2) e^(-x/2) / Γ(k/2+1), Abramowitz and Stegun 26.4.8."""
    half, power = chi_square / 2, freedom / 2
    term = 0.0
    if half > 0:
        term = math.exp(power * math.log(half) - half - math.lgamma(power + 1))

    expected = min(1.0, srm.chi_square_survival(chi_square, freedom) + term)
    assert srm.chi_square_survival(chi_square, freedom + 2) == pytest.approx(
        expected, rel=1e-9, abs=1e-300
    )


def test_even_split_that_is_off_is_a_mismatch():
    # Kohavi, Tang, Xu, "Trustworthy Online Controlled Experiments", ch. 3: p = 1.8e-6.
    found = srm.evaluate_arms(arms(821_588, 815_482))

    assert found.verdict == srm.MISMATCH
    assert found.p_value == pytest.approx(1.8e-6, rel=0.05)
    assert found.chi_square == pytest.approx((821_588 - 815_482) ** 2 / (821_588 + 815_482))


def test_counts_that_fit_are_ok():
    found = srm.evaluate_arms(arms(1000, 1010, 2005, expected=[1, 1, 2]))

    assert (found.verdict, found.degrees_of_freedom) == (srm.OK, 2)
    expected = {name: arm.expected for name, arm in found.arms.items()}
    assert expected == {"arm0": 1003.75, "arm1": 1003.75, "arm2": 2007.5}


@pytest.mark.parametrize("counts", [(0, 0), (1, 0), (4, 5), (9, 0)])
def test_small_samples_are_insufficient_however_they_look(counts):
    assert srm.evaluate_arms(arms(*counts)).verdict == srm.INSUFFICIENT


@pytest.mark.parametrize(
    ("counts", "expected", "verdict"),
    [
        ((3000, 1500), ["0.999", "0.001"], srm.MISMATCH),
        ((4498, 2), ["0.999", "0.001"], srm.INSUFFICIENT),
        ((0, 9), ["0.5", "0.5"], srm.INSUFFICIENT),
        ((3, 6, 0), ["0.4", "0.4", "0.2"], srm.INSUFFICIENT),
        ((3000, 1500, 0), ["0.5", "0.4995", "0.0005"], srm.MISMATCH),
        ((10**15 - 4, 4), [10**15 - 4, 4], srm.INSUFFICIENT),
        ((10**15 - 10**6, 10**6), [10**15 - 4, 4], srm.MISMATCH),
        ((5 * 10**14, 5 * 10**14 + 10**5, 1), [10**15, 10**15, 1], srm.INSUFFICIENT),
        ((5 * 10**14, 6 * 10**14, 1), [10**15, 10**15, 1], srm.MISMATCH),
    ],
)
def test_blatant_mismatch_is_seen_although_an_arm_expects_few(counts, expected, verdict):
    found = srm.evaluate_arms(arms(*counts, expected=expected))

    assert found.verdict == verdict
    assert found.test == srm.BINOMIAL


@given(st.integers(1, 40), st.integers(0, 40), st.fractions("1/100", "99/100"))
def test_binomial_tail_is_the_sum_of_its_terms(total, count, share):
    count, expected = min(count, total), total * share
    places = range(count, total + 1) if count > expected else range(count + 1)
    exact = sum(
        math.comb(total, i) * share**i * (1 - share) ** (total - i) for i in places
    )  # fmt: skip

    found = srm.binomial_tail(total, count, expected)
    assert found == (1.0 if count == expected else pytest.approx(float(exact), rel=1e-9))


@pytest.mark.parametrize(("count", "share"), [(20, 3), (400, 200), (180, 260), (0, 9)])
def test_bound_beyond_what_is_summed_is_above_the_truth(count, share, monkeypatch):
    summed = srm.binomial_tail(1000, count, Fraction(share))
    monkeypatch.setattr(srm, "MAX_SUMMED", 10)

    assert summed <= srm.binomial_tail(1000, count, Fraction(share)) <= summed * 60


def test_with_five_expected_in_each_arm_it_is_judged():
    assert srm.evaluate_arms(arms(10, 0), alpha=0.01).verdict == srm.MISMATCH
    assert srm.evaluate_arms(arms(5, 5)).verdict == srm.OK


def test_perfect_counts_have_probability_one():
    found = srm.evaluate_arms(arms(10**15, 10**15))

    assert (found.chi_square, found.p_value, found.verdict) == (0.0, 1.0, srm.OK)


def test_at_huge_counts_a_difference_is_not_lost_in_rounding():
    found = srm.evaluate_arms(arms(10**15 + 10**8, 10**15 - 10**8))

    assert found.chi_square == 20.0


@given(
    st.lists(st.tuples(st.integers(0, 10**15), st.integers(1, 1000)), min_size=2, max_size=20),
    st.integers(1, 1000),
)
def test_only_the_ratio_of_weights_counts(found, factor):
    counts, weights = zip(*found, strict=True)
    once = srm.evaluate_arms(arms(*counts, expected=weights))
    again = srm.evaluate_arms(arms(*counts, expected=[weight * factor for weight in weights]))

    assert once == again
    assert 0 <= once.p_value <= 1
    assert math.isfinite(once.chi_square)


@pytest.mark.parametrize(
    ("shares", "fits"),
    [
        (["0.5", "0.5"], True),
        (["0.33", "0.33", "0.33"], True),
        (["0.1", "0.9"], True),
        (["1", "1"], True),
        (["50", "50"], True),
        (["3", "0.5"], True),
        (["0.5", "0.4"], False),
        (["0.5", "0.52"], False),
        (["0.000001", "0.000001"], False),
    ],
)
def test_shares_add_up_to_one_or_are_weights(shares, fits):
    assert (srm.describe_share_error([Fraction(share) for share in shares]) == "") == fits
