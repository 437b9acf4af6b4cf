"""Proposed safety rules: validation, and a preview of the refusals."""

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.core import reasons
from controlplane.core.errors import InvalidInput
from switches.rules import evaluation

from .break_glass import RESERVED_NAMES
from .evaluation import Refusal, SafetyRule

FIELDS = ("name", "kind", "switches", "n")
MAX_NAME_LENGTH = 80
MAX_PATTERNS = 50
MAX_ENGAGED = 1000
MAX_SHOWN_REFUSALS = 50


@dataclass(frozen=True)
class RulePreview:
    """The effect a safety rule would have now: engaged members, violation and refused changes."""

    engaged: tuple[str, ...]
    violation: str
    refused: tuple[tuple[str, str, Refusal], ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "engaged": list(self.engaged),
            "violated": bool(self.violation),
            "violation": self.violation,
            "would_refuse": [
                {"switch": switch, "action": action, "would_pass": refusal.would_pass}
                for switch, action, refusal in self.refused
            ],
        }


def validate_proposal(fields: Mapping[str, Any]) -> SafetyRule:
    """Return the safety rule with these fields, or raise :class:`InvalidInput` with every error."""
    name = unicodedata.normalize("NFC", str(fields.get("name") or "")).strip()
    kind = str(fields.get("kind") or "")
    switches = [str(text).strip() for text in fields.get("switches") or ()]
    n, kinds = fields.get("n"), evaluation.KINDS
    problems = {
        "name": _name_problem(name),
        "kind": "" if kind in kinds else f"Must be one of {', '.join(kinds)}.",
        "switches": _switches_problem(switches),
        "n": _n_problem(kind, n),
    }
    if errors := {field: [problem] for field, problem in problems.items() if problem}:
        raise InvalidInput(errors)
    return SafetyRule(name, kind, tuple(dict.fromkeys(switches)), n)


def preview_rule(rule: SafetyRule, engaged: Collection[str], known: Iterable[str]) -> RulePreview:
    refused: list[tuple[str, str, Refusal]] = []
    for switch_id in evaluation.list_members(rule, {*known, *engaged}):
        if switch_id in engaged:
            action, refusals = "release", evaluation.refusals_to_release([rule], switch_id, engaged)
        else:
            action, refusals = "engage", evaluation.refusals_to_engage([rule], switch_id, engaged)
        refused += [(switch_id, action, refusal) for refusal in refusals]
        if len(refused) >= MAX_SHOWN_REFUSALS:
            break
    return RulePreview(
        engaged=tuple(evaluation.list_members(rule, engaged)),
        violation=evaluation.describe_violation(rule, engaged),
        refused=tuple(refused),
    )


def _name_problem(name: str) -> str:
    if not name:
        return "Name the rule by its purpose. Refusals show the name."
    if len(name) > MAX_NAME_LENGTH or "\n" in name:
        return f"At most {MAX_NAME_LENGTH} characters, on one line."
    if reasons.find_text_problems(name, called="name", advice=""):
        return "Remove control and invisible characters."
    plain = unicodedata.normalize("NFKC", name).casefold()
    letters = "".join(filter(str.isalnum, plain))
    for reserved, rule in RESERVED_NAMES.items():
        if letters == reserved.replace("-", ""):
            return f"{reserved} is the reserved name of the rule that {rule}."
    return ""


def _switches_problem(switches: list[str]) -> str:
    if not switches:
        return "Name at least one switch or pattern, such as segment:* or feature:checkout-*."
    if len(switches) > MAX_PATTERNS:
        return f"At most {MAX_PATTERNS} switches and patterns."
    wrong = [text for text in switches if not evaluation.is_pattern(text)]
    if wrong:
        return (
            f"{wrong[0][:140]!r} is not a switch or pattern. Use segment:finance, segment:*, "
            "feature:checkout-*, global:all, or * for every switch."
        )
    return ""


def _n_problem(kind: str, n: Any) -> str:
    if kind != evaluation.AT_MOST:
        return "" if n is None else "Only rules of the kind at_most have a number."
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MAX_ENGAGED:
        return f"Must be a whole number from 1 to {MAX_ENGAGED}."
    return ""
