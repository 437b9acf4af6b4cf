"""Burn-rate rules from OpenSLO alert policies. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from slo.arithmetic.objective import PAGE, TICKET

from .document_index import CONDITION, POLICY, DocumentIndex, OpenSloEntry, as_mapping

SHORT = "switchgear/short"
"""The annotation of a condition for its short window, which OpenSLO does not have."""
PAGES = frozenset({"page", "critical", "high", "sev1", "p1"})
ABOVE = ("gt", "gte")


def read_rules(
    shelf: DocumentIndex, spec: Mapping[str, Any], at: str
) -> list[dict[str, Any]] | None:
    """Return the distinct rules of an SLO's alert policies, None if it has no policies."""
    given = spec.get("alertPolicies")
    if given is None:
        return None
    at = f"{at}.alertPolicies"
    if not isinstance(given, list):
        shelf.wrong(at, "Must be a list.")
        return []
    found: list[dict[str, Any]] = []
    for number, one in enumerate(given):
        place = f"{at}.{number}"
        # Some documents have a bare name where the format has an object.
        reference = {"alertPolicyRef": one} if isinstance(one, str) else one
        policy = shelf.meant(POLICY, reference, "alertPolicyRef", place)
        for condition in _conditions(shelf, policy) if policy else ():
            rule = _rule(shelf, condition)
            if rule and rule not in found:
                found.append(rule)
    return found


def _conditions(shelf: DocumentIndex, policy: OpenSloEntry) -> Iterator[OpenSloEntry]:
    spec, at = policy.spec, f"{policy.place}.spec"
    conditions = spec.get("conditions")
    if not isinstance(conditions, list) or not conditions:
        shelf.wrong(f"{at}.conditions", "Must be a list with at least one condition.")
        return
    if spec.get("alertWhenNoData"):
        said = "alertWhenNoData was left out: where nothing is known, nothing fires."
        shelf.remark(policy.place, said)
    if spec.get("notificationTargets"):
        said = "notificationTargets were left out: who is told is said under Routes."
        shelf.remark(policy.place, said)
    for number, one in enumerate(conditions):
        found = shelf.meant(CONDITION, one, "conditionRef", f"{at}.conditions.{number}")
        if found is not None:
            yield found


def _rule(shelf: DocumentIndex, condition: OpenSloEntry) -> dict[str, Any] | None:
    """Return a condition as a rule; its figures are validated with the rest of the SLO."""
    spec, at = as_mapping(condition.spec.get("condition")), f"{condition.place}.spec.condition"
    if spec.get("kind") != "burnrate":
        shelf.wrong(f"{at}.kind", "Must be burnrate.")
        return None
    if spec.get("op", "gt") not in ABOVE:
        shelf.wrong(f"{at}.op", "Must be gt: a rule fires above its burn rate.")
        return None
    if spec.get("op") == "gte":
        shelf.remark(condition.place, "gte was taken for gt: just at its burn rate nothing fires.")
    short = condition.note(SHORT)
    if spec.get("alertAfter") and not short:
        said = "alertAfter was left out: an alert opens as soon as a short window burns as well."
        shelf.remark(condition.place, said)
    severity = str(condition.spec.get("severity") or TICKET).lower()
    return {
        "long": spec.get("lookbackWindow"),
        "short": short or None,
        "burn_rate": spec.get("threshold"),
        "severity": PAGE if severity in PAGES else TICKET,
    }
