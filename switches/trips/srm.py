"""Sample ratio mismatch test of an experiment's arms.

Pearson's chi-square test of the counts against the expected shares, computed in exact fractions. If
an arm's expected count is too small, each arm is tested with the binomial distribution instead.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

ALPHA = 0.001
"""Significance level; low because an experiment is tested repeatedly."""
MIN_EXPECTED = 5
"""Minimum expected count for the chi-square approximation (Cochran)."""
SHARES_TOLERANCE = Fraction(1, 100)
"""Tolerance of the shares' sum: `0.33, 0.33, 0.33` means thirds, `0.5, 0.4` is an error."""

MAX_SUMMED = 10**6
"""Maximum total for which a binomial tail is summed; Chernoff's bound is used beyond."""

CHI_SQUARE, BINOMIAL = "chi-square", "binomial"
OK, MISMATCH, INSUFFICIENT = "ok", "mismatch", "insufficient"


@dataclass(frozen=True)
class Arm:
    """An experiment arm: its planned share or weight, and its count."""

    name: str
    expected: Fraction
    count: int


@dataclass(frozen=True)
class ArmResult:
    """An arm's count, its planned share from 0 to 1, and the expected count for that share."""

    count: int
    share: float
    expected: float


@dataclass(frozen=True)
class SrmResult:
    """The result of a sample ratio test, by arm; `test` names the test that gave `p_value`."""

    verdict: str
    chi_square: float
    degrees_of_freedom: int
    p_value: float
    alpha: float
    total: int
    arms: Mapping[str, ArmResult]
    test: str = CHI_SQUARE

    @property
    def mismatch(self) -> bool:
        return self.verdict == MISMATCH


def describe_share_error(expected: Sequence[Fraction]) -> str:
    """Return why these shares of an experiment's arms are invalid, or an empty text.

    Shares that are all below 1 must sum to 1; others are weights such as 1 : 1 : 2.
    """
    total = sum(expected, Fraction())
    if any(share >= 1 for share in expected) or abs(total - 1) <= SHARES_TOLERANCE:
        return ""
    return (
        f"The shares add up to {float(total):g} and not to 1. Give shares of the whole, or weights "
        "such as 1 and 1."
    )


def evaluate_arms(arms: Sequence[Arm], alpha: float = ALPHA) -> SrmResult:
    """Test the arms' counts against their expected shares.

    Takes two or more arms with positive shares of any sum. Uses Pearson's chi-square test; if an
    expected count is too low, the smallest binomial p-value of an arm instead.
    """
    weights = sum((arm.expected for arm in arms), Fraction())
    total = sum(arm.count for arm in arms)
    expected = [total * arm.expected / weights for arm in arms]
    chi_square = sum(
        ((arm.count - cell) ** 2 / cell for arm, cell in zip(arms, expected, strict=True) if cell),
        Fraction(),
    )
    freedom = len(arms) - 1
    p_value = chi_square_survival(float(chi_square), freedom)
    few = min(expected) < MIN_EXPECTED
    if few:  # The smallest two-sided p-value of an arm, with Bonferroni correction.
        tests = len(arms) if len(arms) > 2 else 1
        tails = (
            binomial_tail(total, arm.count, cell) for arm, cell in zip(arms, expected, strict=True)
        )
        p_value = min(1.0, 2 * tests * min(tails))
    fits = INSUFFICIENT if few else OK
    return SrmResult(
        verdict=MISMATCH if p_value < alpha else fits,
        chi_square=float(chi_square),
        degrees_of_freedom=freedom,
        p_value=p_value,
        alpha=alpha,
        total=total,
        arms={
            arm.name: ArmResult(arm.count, float(arm.expected / weights), float(cell))
            for arm, cell in zip(arms, expected, strict=True)
        },
        test=BINOMIAL if few else CHI_SQUARE,
    )


def binomial_tail(total: int, count: int, expected: Fraction) -> float:
    """Return P(X ≥ `count`) for a binomial X, or P(X ≤ `count`) if `count` is below `expected`.

    If `total` is above `MAX_SUMMED`, return Chernoff's bound exp(-n·D).
    """
    if not total or count == expected:
        return 1.0
    if total > MAX_SUMMED:
        off = count - expected
        bound = _divergence(expected, off) + _divergence(total - expected, -off)
        return math.exp(-bound)
    share = float(expected / total)
    odds, upwards = share / (1 - share), count > expected
    logarithm = (
        math.lgamma(total + 1)
        - math.lgamma(count + 1)
        - math.lgamma(total - count + 1)
        + count * math.log(share)
        + (total - count) * math.log1p(-share)
    )
    term, place, terms = 1.0, count, [1.0]
    while term > 1e-18 and place != (total if upwards else 0):
        if upwards:
            term *= (total - place) / (place + 1) * odds
        else:
            term *= place / (total - place + 1) / odds
        place += 1 if upwards else -1
        terms.append(term)
    return min(1.0, math.exp(min(0.0, logarithm)) * math.fsum(terms))


def _divergence(expected: Fraction, off: Fraction) -> float:
    part = float(off / expected)
    if part <= -1:
        return float(expected)
    if abs(part) < 1e-3:
        return float(off * off / expected) * (1 / 2 - part / 6 + part**2 / 12 - part**3 / 20)
    return float(expected) * ((1 + part) * math.log1p(part) - part)


def chi_square_survival(chi_square: float, degrees_of_freedom: int) -> float:
    """Return P(X ≥ `chi_square`) for a chi-square variable of 1 or more degrees of freedom.

    With h = x/2, for an even number k: e^-h · Σ h^i/i! for i < k/2; for an odd one: erfc(√h) +
    e^-h · Σ h^(i-½)/Γ(i+½) for 1 ≤ i ≤ (k-1)/2 (Abramowitz and Stegun 26.4.4, 26.4.5). Terms
    are computed from logarithms to avoid overflow, and are all positive, so nothing cancels.
    """
    if degrees_of_freedom < 1:
        raise ValueError("There is at least one degree of freedom.")
    half = chi_square / 2
    if half <= 0:
        return 1.0
    odd = degrees_of_freedom % 2
    powers = [i + odd / 2 for i in range(degrees_of_freedom // 2)]
    logarithm = math.log(half)
    terms = [math.exp(power * logarithm - half - math.lgamma(power + 1)) for power in powers]
    if odd:
        terms.append(math.erfc(math.sqrt(half)))
    return min(1.0, math.fsum(terms))
