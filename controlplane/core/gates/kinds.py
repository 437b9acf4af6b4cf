"""Registry of the kinds of gates.

A kind is one object. The app that answers it registers it in its module `gate_kinds`; plans, the
plan editor, the API, messages and the command line find everything they need on that object.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from controlplane.core.registry import KindRegistry

from .fields import Field
from .questions import NO_DATA, Answer, Question

LookUp = Callable[[Sequence[Question], datetime], Sequence[Any]]
"""Return what is known of each question at that moment, in their order, in one query."""
Judge = Callable[[Question, Any, datetime], Answer]
"""Return the answer to a question from what its kind's look-up found."""


@dataclass(frozen=True)
class GateKind:
    """A kind of gate: its fields, its words, and its evaluation.

    `summary` is a format string over the gate's fields (`breaker {dependency}`); `passes_when`
    completes "The gate passes when …" for the documentation. Kinds are listed by `position`.
    """

    name: str
    label: str
    summary: str
    passes_when: str
    fields: tuple[Field, ...]
    look_up: LookUp
    judge: Judge
    position: int
    can_fail: bool = True
    """True if it can find that something is wrong; other kinds only wait."""
    is_unique: bool = False
    """True if a step has at most one of it."""
    is_stored: bool = False
    """True if its questions are rows of :class:`Gate`, which an app answers."""
    initial_verdict: str = NO_DATA

    def describe(self, spec: Mapping[str, Any]) -> str:
        """Return a gate of this kind in words, such as `breaker core->oracle`."""
        return self.summary.format_map(spec)

    def __str__(self) -> str:
        return self.name


GATE_KINDS: KindRegistry[GateKind] = KindRegistry("gate_kinds", order=attrgetter("position"))


def get_fields(name: str) -> tuple[Field, ...]:
    """Return the fields of a kind; none if no app here has it."""
    kind = GATE_KINDS.get(name)
    return kind.fields if kind else ()


def describe(spec: Mapping[str, Any]) -> str:
    """Return a gate in words; its type alone if no app here has the kind."""
    kind = GATE_KINDS.get(spec["type"])
    return kind.describe(spec) if kind else str(spec["type"])


def document() -> list[str]:
    """Return a Markdown table row for each kind, as docs/operate.md has them."""
    return [f"| `{kind.name}` | {kind.passes_when} |" for kind in GATE_KINDS.values()]
