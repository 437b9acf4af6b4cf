"""Registry of the kinds of gates.

A kind is one object. The app that answers it registers it in its module `gate_kinds`; plans, the
plan editor, the API, messages and the command line find everything they need on that object.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.module_loading import autodiscover_modules

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


_kinds: dict[str, GateKind] = {}


def register(kind: GateKind) -> GateKind:
    """Register a kind under its name. Raise ValueError if the name is taken."""
    if kind.name in _kinds:
        raise ValueError(f"The gate kind {kind.name} is registered already.")
    _kinds[kind.name] = kind
    return kind


def unregister(name: str) -> None:
    """Remove a kind that a test has registered."""
    del _kinds[name]


def get(name: object) -> GateKind | None:
    """Return the kind of this name; None if no app here has it."""
    _discover()
    return _kinds.get(name) if isinstance(name, str) else None


def get_all() -> list[GateKind]:
    """Return every kind, by position."""
    _discover()
    return sorted(_kinds.values(), key=lambda kind: kind.position)


def get_names() -> list[str]:
    """Return the name of every kind, by position."""
    return [kind.name for kind in get_all()]


def get_fields(name: object) -> tuple[Field, ...]:
    """Return the fields of a kind; none if no app here has it."""
    kind = get(name)
    return kind.fields if kind else ()


def describe(spec: Mapping[str, Any]) -> str:
    """Return a gate in words; its type alone if no app here has the kind."""
    kind = get(spec["type"])
    return kind.describe(spec) if kind else str(spec["type"])


def document() -> list[str]:
    """Return a Markdown table row for each kind, as docs/operate.md has them."""
    return [f"| `{kind.name}` | {kind.passes_when} |" for kind in get_all()]


@functools.cache
def _discover() -> None:
    autodiscover_modules("gate_kinds")
