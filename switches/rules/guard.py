"""Asking the safety rules, inside the changing transaction: the publication row is locked already,
so nothing can change between the question and the commit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """A rule in the way: its name, what it says, and what would pass."""

    rule: str
    detail: str
    would_pass: str


def refusals_to_engage(switch_id: str) -> list[Refusal]:
    """Every rule that forbids to engage this switch as things stand; empty if none does."""
    return []


def refusals_to_release(switch_id: str) -> list[Refusal]:
    """Every rule that forbids to release this switch as things stand; empty if none does."""
    return []


def is_protected(switch_id: str) -> bool:
    """Whether a `protected` rule covers it: it is never released by itself, or by one person."""
    return False
