"""The risk of requests: a table of limits, and the lifetime of each class. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


CLASSES = tuple(Risk)
"""In ascending order."""

OF_TAG: Mapping[str, Risk] = {
    "financial": Risk.HIGH,
    "destructive": Risk.CRITICAL,
    "data_destructive": Risk.CRITICAL,
}
MAX_RECIPIENTS = 100
MAX_COST_USD = 50.0
MAX_MINUTES = 120.0

OF_KIND: Mapping[str, Risk] = {
    "release": Risk.HIGH,
    "permanent": Risk.HIGH,
    "purge": Risk.CRITICAL,
    "ramp_gate": Risk.HIGH,
    "rule_change": Risk.HIGH,
    "break_glass_review": Risk.CRITICAL,
}
"""The least that each kind of request is, whatever else is known of it."""

LIFETIME: Mapping[Risk, timedelta] = {
    Risk.LOW: timedelta(hours=24),
    Risk.MEDIUM: timedelta(hours=24),
    Risk.HIGH: timedelta(hours=24),
    Risk.CRITICAL: timedelta(hours=2),
}
"""Lifetime of a request, by risk.

Critical ones expire soon, because an approval half a day later would apply to another situation.
"""


@dataclass(frozen=True)
class RiskFacts:
    """Facts about a request: tags, recipients, cost in USD, duration in minutes.

    `recipients` counts people, messages or instances.
    """

    tags: frozenset[str] = frozenset()
    recipients: int = 0
    cost_usd: float = 0.0
    duration_minutes: float = 0.0


def classify(facts: RiskFacts) -> Risk:
    """Return the worst class that any of the facts calls for; NaN counts as too large.

    After the risk classifier of "long-running autonomous agents", section 9, which returns at the
    first rule that matches: there a financial and destructive step would be the milder of the two.
    """
    found = [OF_TAG.get(tag, Risk.LOW) for tag in facts.tags]
    if not facts.recipients <= MAX_RECIPIENTS:
        found.append(Risk.HIGH)
    if not facts.cost_usd <= MAX_COST_USD:
        found.append(Risk.HIGH)
    if not facts.duration_minutes <= MAX_MINUTES:
        found.append(Risk.MEDIUM)
    return worst(*found)


def of_request(kind: str, facts: RiskFacts | None = None, at_least: str = "") -> Risk:
    """Return the risk of a request of this kind; neither facts nor caller can make it milder."""
    found = [OF_KIND.get(kind, Risk.HIGH)]
    if facts is not None:
        found.append(classify(facts))
    if at_least:
        found.append(Risk(at_least))
    return worst(*found)


def worst(*risks: Risk) -> Risk:
    """Return the worst risk; low if there are none."""
    return max(risks, key=CLASSES.index, default=Risk.LOW)
