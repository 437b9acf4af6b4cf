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
from .questions import NO_DATA, GateAnswer, GateQuestion

LookUp = Callable[[Sequence[GateQuestion], datetime], Sequence[Any]]
"""Function that fetches the data of each gate, in the same order, in one query."""
Evaluate = Callable[[GateQuestion, Any, datetime], GateAnswer]
"""Function that returns a gate's verdict at a time, from the data that `LookUp` fetched."""


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
    if kind is None:
        return str(spec["type"])
    shown = {
        field.name: field.show(spec[field.name]) for field in kind.fields if field.name in spec
    }
    return kind.summary.format_map(shown)


def document_kinds() -> list[str]:
    """Return the rows of the Markdown table of gate kinds in docs/operate.md."""
    return [f"| `{kind.name}` | {kind.passes_when} |" for kind in GATE_KINDS.values()]
