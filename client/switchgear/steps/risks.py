"""The risk of a step by its tags and estimate, which decides if the step needs an approval."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Risk(IntEnum):
    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The expected cost, duration and number of recipients of a step."""

    cost_usd: float = 0.0
    minutes: float = 0.0
    recipients: int = 0


@dataclass(frozen=True)
class RiskRule:
    """A rule that gives the steps it matches at least the risk `risk`.

    The rule matches a step that has `tag` and whose :class:`Estimate` is above `above` in the field
    named `estimate`. A `tag` or `estimate` of None matches every step.
    """

    risk: Risk
    tag: str | None = None
    estimate: str | None = None
    above: float = 0.0

    def matches(self, tags: Iterable[str], estimate: Estimate) -> bool:
        if self.tag is not None and self.tag not in tags:
            return False
        return self.estimate is None or getattr(estimate, self.estimate) > self.above


RISK_RULES: tuple[RiskRule, ...] = (
    RiskRule(Risk.CRITICAL, tag="data_destructive"),
    RiskRule(Risk.CRITICAL, tag="irreversible"),
    RiskRule(Risk.HIGH, tag="financial"),
    RiskRule(Risk.HIGH, tag="external_email", estimate="recipients", above=100),
    RiskRule(Risk.HIGH, estimate="cost_usd", above=50),
    RiskRule(Risk.MEDIUM, estimate="minutes", above=120),
)


def risk_of(
    tags: Iterable[str], estimate: Estimate, rules: Iterable[RiskRule] = RISK_RULES
) -> Risk:
    """Return the highest risk among the rules that match a step, LOW if none does."""
    held = frozenset(tags)
    return max((rule.risk for rule in rules if rule.matches(held, estimate)), default=Risk.LOW)
