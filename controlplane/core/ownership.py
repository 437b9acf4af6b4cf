"""Patterns of owned resources, of which the most specific wins.

A pattern is `kind:name`, in which `*` stands for any characters: `segment:finance*`,
`dependency:core->*`, `service:core`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from . import wildcards
from .scopes import SCOPES

OTHER_KINDS = ("service", "dependency", "slo", "stream")
MAX_REMEMBERED = 50_000
_TEXT = re.compile(r"[a-z]{1,12}:[^\s\x00-\x1f\x7f]+")


def list_kinds() -> tuple[str, ...]:
    """Return the kinds of resources that patterns can name."""
    return (*SCOPES, *OTHER_KINDS)


def kind_of(resource: str) -> str:
    return resource.partition(":")[0]


@dataclass(frozen=True)
class ResourcePattern:
    """A pattern of resources; `text` is valid if :func:`find_problem` finds none."""

    text: str

    def matches(self, resource: str) -> bool:
        return wildcards.matches(self.text, resource)

    @property
    def rank(self) -> tuple[bool, int, int, str]:
        """The pattern's specificity: exact, then literal characters, then those before a `*`."""
        literal = len(self.text) - self.text.count("*")
        return "*" not in self.text, literal, len(self.text.partition("*")[0]), self.text


def find_problem(text: str) -> str:
    """Return a sentence that says why a pattern is invalid, "" if it is valid."""
    if not _TEXT.fullmatch(text):
        return f"{text!r} is not of the form kind:name, such as segment:finance*."
    if kind_of(text) not in list_kinds():
        return f"{text!r} must begin with one of {', '.join(list_kinds())}, and a colon."
    return ""


class Owners:
    """The owners of resources, by patterns; each answer is remembered.

    Patterns with a `*` are found by the text before it, so that many teams cost little.
    """

    def __init__(self, patterns: Iterable[tuple[str, str]]) -> None:
        """Take pairs of a pattern and its owner."""
        self._exact: dict[str, str] = {}
        self._wild: dict[str, list[tuple[ResourcePattern, str]]] = {}
        for text, owner in patterns:
            if "*" in text:
                start = text.partition("*")[0]
                self._wild.setdefault(start, []).append((ResourcePattern(text), owner))
            else:
                self._exact[text] = owner
        self._lengths = {len(start) for start in self._wild}
        self._known: dict[str, str] = {}

    def owner_of(self, resource: str) -> str:
        """Return the owner of a resource, "" without one."""
        found = self._known.get(resource)
        if found is None:
            found = self._exact.get(resource) or self._find_by_wildcard(resource)
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            self._known[resource] = found
        return found

    def _find_by_wildcard(self, resource: str) -> str:
        matching = (
            (pattern.rank, owner)
            for length in self._lengths
            for pattern, owner in self._wild.get(resource[:length], ())
            if pattern.matches(resource)
        )
        return max(matching, default=((), ""))[1]
