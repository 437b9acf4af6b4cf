"""Risk classes of approval requests, and the lifetime of a request by risk. Pure."""

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
"""Risk classes in ascending order."""

RISK_OF_TAG: Mapping[str, Risk] = {
    "financial": Risk.HIGH,
    "destructive": Risk.CRITICAL,
    "data_destructive": Risk.CRITICAL,
}
MAX_RECIPIENTS = 100
MAX_COST_USD = 50.0
MAX_MINUTES = 120.0

RISK_OF_KIND: Mapping[str, Risk] = {
    "release": Risk.HIGH,
    "permanent": Risk.HIGH,
    "purge": Risk.CRITICAL,
    "ramp_gate": Risk.HIGH,
    "rule_change": Risk.HIGH,
    "authority_change": Risk.HIGH,
    "break_glass_review": Risk.CRITICAL,
}
"""Minimum risk of each kind of request."""

LIFETIME: Mapping[Risk, timedelta] = {
    Risk.LOW: timedelta(hours=24),
    Risk.MEDIUM: timedelta(hours=24),
    Risk.HIGH: timedelta(hours=24),
    Risk.CRITICAL: timedelta(hours=2),
}
"""Time until a request expires, by risk.

Critical requests expire soon, because the situation changes within hours.
"""


@dataclass(frozen=True)
class RiskFacts:
    """Properties of a request that determine its risk.

    `recipients` counts people, messages or instances; costs are in USD, durations in minutes.
    """

    tags: frozenset[str] = frozenset()
    recipients: int = 0
    cost_usd: float = 0.0
    duration_minutes: float = 0.0


def classify_facts(facts: RiskFacts) -> Risk:
    """Return the highest risk that any of the facts implies; NaN counts as a very large number.

    Source: the risk classifier of "long-running autonomous agents", section 9. That classifier
    stops at the first match; this function considers all facts.
    """
    risks = [RISK_OF_TAG.get(tag, Risk.LOW) for tag in facts.tags]
    if not facts.recipients <= MAX_RECIPIENTS:
        risks.append(Risk.HIGH)
    if not facts.cost_usd <= MAX_COST_USD:
        risks.append(Risk.HIGH)
    if not facts.duration_minutes <= MAX_MINUTES:
        risks.append(Risk.MEDIUM)
    return find_worst_risk(*risks)


def classify_request(kind: str, facts: RiskFacts | None = None, at_least: str = "") -> Risk:
    """Return the risk of a request: the highest of its kind's, its facts' and `at_least`."""
    risks = [RISK_OF_KIND.get(kind, Risk.HIGH)]
    if facts is not None:
        risks.append(classify_facts(facts))
    if at_least:
        risks.append(Risk(at_least))
    return find_worst_risk(*risks)


def find_worst_risk(*risks: Risk) -> Risk:
    """Return the highest of the risks, or low if there are none."""
    return max(risks, key=CLASSES.index, default=Risk.LOW)
