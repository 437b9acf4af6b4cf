"""Registry of gate kinds.

An app registers its kinds in its module `gate_kinds`. Plans, the plan editor, the API, messages and
the command line read everything about a kind from its object.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from controlplane.core.registry import KindRegistry

from .fields import GateField
from .questions import FAIL, NO_DATA, PASS, GateAnswer, GateQuestion
from .verdicts import get_explanation

LookUp = Callable[[Sequence[GateQuestion], datetime], Sequence[Any]]
"""Function that fetches the data of each gate, in the same order, in one query."""
Evaluate = Callable[[GateQuestion, Any, datetime], GateAnswer]
"""Function that returns a gate's verdict at a time, from the data that `LookUp` fetched."""
Finding = Callable[[Mapping[str, Any], Mapping[str, Any]], str]
"""Function that words a pass or a failure, from the gate as in the plan and its evidence."""


@dataclass(frozen=True)
class GateKind:
    """A kind of gate: its fields, its texts, and its evaluation.

    `summary` is a format string over the gate's fields (`breaker {dependency}`); `passes_when`
    completes "The gate passes when …" for the documentation. Kinds are sorted by `position`.
    """

    name: str
    label: str
    summary: str
    passes_when: str
    fields: tuple[GateField, ...]
    look_up: LookUp
    evaluate: Evaluate
    position: int
    subject: str = ""
    """Format string over the fields that names the gate before a finding; `summary` by default."""
    finding: Finding = lambda _spec, evidence: get_explanation(evidence)
    can_fail: bool = True
    """True if the gate can fail a step; other kinds only delay it."""
    is_unique: bool = False
    """True if a step can have at most one gate of the kind."""
    is_stored: bool = False
    """True if an app evaluates the gate and records its verdict in a row of :class:`Gate`."""
    initial_verdict: str = NO_DATA

    def __str__(self) -> str:
        return self.name


GATE_KINDS: KindRegistry[GateKind] = KindRegistry("gate_kinds", order=attrgetter("position"))


def get_fields(name: str) -> tuple[GateField, ...]:
    """Return the fields of a gate kind; empty if no installed app has the kind."""
    kind = GATE_KINDS.get(name)
    return kind.fields if kind else ()


def describe_gate(spec: Mapping[str, Any]) -> str:
    """Return a summary of a gate, such as `breaker core → oracle`; its type for an unknown kind."""
    kind = GATE_KINDS.get(spec["type"])
    return _fill_in(kind, kind.summary, spec) if kind else str(spec["type"])


def describe_finding(gate: Mapping[str, Any]) -> str:
    """Return the latest result of a gate as text, without a full stop.

    An example is `SLO core-errors: burn rate 12×, allowed 1× (58 of 151 events good in 12 s)`.
    `gate` has the fields of the plan, and `verdict` and `evidence` of the result. A gate without
    evidence is described by its rule.
    """
    kind = GATE_KINDS.get(gate["type"])
    evidence = gate.get("evidence") or {}
    finding = get_explanation(evidence)
    if kind and gate.get("verdict") in (PASS, FAIL):
        finding = kind.finding(gate, evidence)
    if not finding:
        return describe_gate(gate)
    subject = _fill_in(kind, kind.subject or kind.summary, gate) if kind else gate["type"]
    return f"{subject}: {finding}"


def document_kinds() -> list[str]:
    """Return the rows of the Markdown table of gate kinds in docs/operate.md."""
    return [f"| `{kind.name}` | {kind.passes_when} |" for kind in GATE_KINDS.values()]


def _fill_in(kind: GateKind, template: str, spec: Mapping[str, Any]) -> str:
    shown = {
        field.name: field.show(spec[field.name]) for field in kind.fields if field.name in spec
    }
    return template.format_map(shown)
