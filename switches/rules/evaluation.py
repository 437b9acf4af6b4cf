"""Evaluation of safety rules for one change, given the engaged switches.

Ramping switches count as engaged. When a release is evaluated, a switch whose ramp allows all
traffic counts as released. Rules refuse only changes that make a violation worse.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from controlplane.core import wildcards
from switches.scopes import GLOBAL_ID, KEY_PATTERN, SCOPES, join_first

AT_MOST, EXCLUSIVE, AT_LEAST_ONE, PROTECTED = "at_most", "exclusive", "at_least_one", "protected"
KINDS = (AT_MOST, EXCLUSIVE, AT_LEAST_ONE, PROTECTED)
ANY_SWITCH = "*"
MAX_NAMED = 5  # Switches named in a sentence.

_KEY_PATTERN = re.compile(KEY_PATTERN.replace("[", "[*"))


@dataclass(frozen=True)
class SafetyRule:
    """A safety rule; `switches` are ids or patterns, `n` is the maximum if `kind` is `at_most`."""

    name: str
    kind: str
    switches: tuple[str, ...]
    n: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "switches": list(self.switches)}

    @property
    def max_engaged(self) -> int | None:
        """Return the maximum of switches engaged at once, or None without a limit."""
        if self.kind == EXCLUSIVE:
            return 1
        return self.n if self.kind == AT_MOST else None


@dataclass(frozen=True)
class Refusal:
    """A rule's refusal of a change: the rule's name, an explanation, and what to do first."""

    rule: str
    detail: str
    would_pass: str


def is_pattern(text: str) -> bool:
    """Return True for a switch id or a pattern: `segment:*`, `feature:checkout-*`, `*`."""
    if text in {ANY_SWITCH, GLOBAL_ID}:
        return True
    scope, _, key = text.partition(":")
    found = SCOPES.get(scope)
    return bool(found and not found.stops_everything and _KEY_PATTERN.fullmatch(key))


def covers(rule: SafetyRule, switch_id: str) -> bool:
    return any(matches(pattern, switch_id) for pattern in rule.switches)


def matches(pattern: str, switch_id: str) -> bool:
    """Return True if the pattern matches the switch id; `*` stands for any characters.

    The global switch is matched only by the patterns `global:all` and `*`.
    """
    if switch_id == GLOBAL_ID or "*" not in pattern:
        return pattern in (ANY_SWITCH, switch_id)
    return wildcards.matches(pattern, switch_id)


def refusals_to_engage(
    rules: Iterable[SafetyRule], switch_id: str, engaged: Collection[str]
) -> list[Refusal]:
    if switch_id in engaged:
        return []
    refusals = []
    for rule in select_covering(rules, switch_id):
        now = list_members(rule, engaged)
        if rule.max_engaged is None or len(now) < rule.max_engaged:
            continue
        before, verb = len(now) - rule.max_engaged + 1, "is" if len(now) == 1 else "are"
        named = join_first(now, MAX_NAMED)
        which = named if before == len(now) else f"{before} of {named}"
        detail = f"{describe_rule(rule)}; {len(now)} {verb} now: {named}."
        passes = f"Release {which} first, then engage {switch_id}."
        refusals.append(Refusal(rule.name, detail, passes))
    return refusals


def refusals_to_release(
    rules: Iterable[SafetyRule], switch_id: str, engaged: Collection[str]
) -> list[Refusal]:
    """Return a refusal for each safety rule that forbids releasing the switch.

    `engaged` are the switches that block traffic now.
    """
    if switch_id not in engaged:
        return []
    refusals = []
    for rule in select_covering(rules, switch_id):
        if rule.kind != AT_LEAST_ONE or list_members(rule, engaged) != [switch_id]:
            continue
        others = [pattern for pattern in rule.switches if pattern != switch_id]
        passes = f"{switch_id} is the rule's only switch. Add another to the rule first."
        if others:
            is_single = len(others) == 1 and "*" not in others[0]
            which = others[0] if is_single else f"another of {', '.join(others)}"
            passes = f"Engage {which} first, then release {switch_id}."
        detail = f"{describe_rule(rule)}; {switch_id} is the only one engaged."
        refusals.append(Refusal(rule.name, detail, passes))
    return refusals


def is_protected(rules: Iterable[SafetyRule], switch_id: str) -> bool:
    """Return True if a rule of kind `protected` covers the switch."""
    return any(rule.kind == PROTECTED for rule in select_covering(rules, switch_id))


def list_members(rule: SafetyRule, switches: Iterable[str]) -> list[str]:
    """Return those of `switches` that the rule covers, sorted."""
    return sorted({switch_id for switch_id in switches if covers(rule, switch_id)})


def forbidding_rule(
    rules: Iterable[SafetyRule], switch_id: str, on_expiry: str
) -> SafetyRule | None:
    """Return the safety rule that forbids the expiry policy `on_expiry` for the switch, or None.

    Protected switches always hold. Disconnected clients act on the expiry policy without evaluating
    rules, so a switch of an `at_least_one` rule can't have the policy `release`.
    """
    forbidden = {PROTECTED: {"ramp", "release"}, AT_LEAST_ONE: {"release"}}
    covering = select_covering(rules, switch_id)
    return next((rule for rule in covering if on_expiry in forbidden.get(rule.kind, ())), None)


def describe_violation(rule: SafetyRule, engaged: Iterable[str]) -> str:
    now = list_members(rule, engaged)
    if rule.max_engaged is not None and len(now) > rule.max_engaged:
        return f"{len(now)} are engaged, {len(now) - rule.max_engaged} more than allowed."
    if rule.kind == AT_LEAST_ONE and not now:
        return "None of them is engaged."
    return ""


def is_at_limit(rule: SafetyRule, engaged: Iterable[str]) -> bool:
    count = len(list_members(rule, engaged))
    return count == (1 if rule.kind == AT_LEAST_ONE else rule.max_engaged)


def describe_rule(rule: SafetyRule) -> str:
    """Return the rule as text: `At most 2 of segment:* engaged`."""
    group = ", ".join(rule.switches)
    if rule.kind == AT_MOST:
        return f"At most {rule.n} of {group} engaged"
    if rule.kind == EXCLUSIVE:
        return f"Only one of {group} engaged at a time"
    if rule.kind == AT_LEAST_ONE:
        return f"At least one of {group} stays engaged"
    return f"{group}: not released automatically, or at once by one person"


def select_covering(rules: Iterable[SafetyRule], switch_id: str) -> list[SafetyRule]:
    return [rule for rule in rules if covers(rule, switch_id)]
