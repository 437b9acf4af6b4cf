"""How dangerous a step is, by its tags and estimates: what people are asked about before."""

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
    """What a step will take, as far as can be said before."""

    cost_usd: float = 0.0
    minutes: float = 0.0
    recipients: int = 0


@dataclass(frozen=True)
class Rule:
    """Makes a step at least `risk`: one with the `tag` (any if None), and an `estimate` of more
    than `above` (any if None)."""

    risk: Risk
    tag: str | None = None
    estimate: str | None = None
    above: float = 0.0

    def matches(self, tags: Iterable[str], estimate: Estimate) -> bool:
        if self.tag is not None and self.tag not in tags:
            return False
        return self.estimate is None or getattr(estimate, self.estimate) > self.above


RULES: tuple[Rule, ...] = (
    Rule(Risk.CRITICAL, tag="data_destructive"),
    Rule(Risk.CRITICAL, tag="irreversible"),
    Rule(Risk.HIGH, tag="financial"),
    Rule(Risk.HIGH, tag="external_email", estimate="recipients", above=100),
    Rule(Risk.HIGH, estimate="cost_usd", above=50),
    Rule(Risk.MEDIUM, estimate="minutes", above=120),
)


def risk_of(tags: Iterable[str], estimate: Estimate, rules: Iterable[Rule] = RULES) -> Risk:
    """The highest that a rule gives: of a step that is financial and destructive, the latter."""
    held = frozenset(tags)
    return max((rule.risk for rule in rules if rule.matches(held, estimate)), default=Risk.LOW)
