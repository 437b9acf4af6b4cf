"""Policies as lines of text for pages, and differences between two policies. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from breakers.policies.parameters import ALIASES, PARAMETERS
from breakers.policies.policy import remove_aliases
from breakers.policies.values import number_text
from controlplane.core.audit.differences import AuditChange, compare_texts

EMPTY: tuple[Any, ...] = (None, "", [], {})
HELP = {one.path: one for one in PARAMETERS}
SECTIONS = {
    "": "Call",
    "breaker": "Breaker",
    "retry": "Retry",
    "bulkhead": "Bulkhead",
    "fallback": "Fallback",
    "budget": "Token budget",
}
UNSHOWN = frozenset({"override", "routes"})
"""Fields that the page of a dependency shows in other places."""
FIRST_NAMES = {"provider": 0, "model": 1}
AUDIT_ONLY_FIELDS = frozenset({"by", "set_at", "reason", "version"})
"""Fields of an override's audit row that are not shown as changes."""


@dataclass(frozen=True)
class Difference:
    """A value that differs between two JSON documents; None on the side where it is missing."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.path}: {as_text(self.before)} → {as_text(self.after)}"


@dataclass(frozen=True)
class PolicyLine:
    """A parameter and its value as text."""

    path: str
    name: str
    value: str
    help: str
    is_default: bool


@dataclass(frozen=True)
class PolicySection:
    """A section of a policy; `is_set` is False if the section is null or empty."""

    name: str
    title: str
    is_set: bool
    lines: Sequence[PolicyLine]

    @property
    def chosen(self) -> Sequence[PolicyLine]:
        return [line for line in self.lines if not line.is_default]

    @property
    def defaults(self) -> Sequence[PolicyLine]:
        return [line for line in self.lines if line.is_default]


def policy_sections(document: Mapping[str, Any]) -> list[PolicySection]:
    """Return all sections of a policy, with one line per parameter."""
    found = []
    for name, title in SECTIONS.items():
        part = document if not name else document.get(name)
        values = part if isinstance(part, Mapping) else {}
        lines = [
            _policy_line(f"{name}.{key}" if name else key, key, value)
            for key, value in values.items()
            if _is_line(name, key)
        ]
        found.append(PolicySection(name, title, bool(values), lines))
    return found


def iterate_values(document: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of a JSON document with its path (`breaker.open_seconds`).

    The values inside of objects are yielded, also of objects in lists.
    """
    for name, value in document.items():
        below = f"{path}.{name}" if path else name
        if isinstance(value, Mapping) and value:
            yield from iterate_values(value, below)
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            yield from iterate_values({str(place): one for place, one in enumerate(value)}, below)
        else:
            yield below, value


def list_differences(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> list[Difference]:
    """Return the values that differ between two JSON documents, in the order of `after`.

    Values that only `before` has come last.
    """
    was, becomes = dict(iterate_values(before or {})), dict(iterate_values(after or {}))
    return [
        Difference(path, old, new)
        for path in dict.fromkeys([*becomes, *was])
        if (old := was.get(path)) != (new := becomes.get(path))
        and not (old in EMPTY and new in EMPTY)
    ]


def compare_policies(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[AuditChange]:
    """Return the parameters that differ between two policies; aliases are ignored."""
    texts = (json.dumps(flatten(remove_aliases(one))) for one in (before, after))
    return [change for change in compare_texts(*texts) if change.changed]


def compare_audit_values(before: str, after: str) -> list[AuditChange]:
    """Return the fields that differ between the two JSON values of an audit row."""
    old, new = json.loads(before), json.loads(after)
    if not isinstance(old, dict | None) or not isinstance(new, dict | None):
        return compare_texts(before, after)
    found = compare_texts(json.dumps(flatten(old or {})), json.dumps(flatten(new or {})))
    found = [change for change in found if change.field.replace(" ", "_") not in AUDIT_ONLY_FIELDS]
    return [change for change in found if change.changed and (change.before or change.after)]


def flatten(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a JSON object as values by path (`breaker.window_size`); lists become text."""
    found: dict[str, Any] = {}
    for key, value in document.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found |= flatten(value, f"{path}.") or {path: "{}"}
        elif isinstance(value, list):
            found[path] = as_text(value)
        else:
            found[path] = value
    return found


def as_text(value: Any) -> str:
    """Return a value as text for people, a dash if it is empty."""
    if value in EMPTY:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_item_text, value))
    if isinstance(value, float):
        return number_text(value)
    return hop_line(value)


def hop_line(value: Any) -> str:
    """Return a hop of a fallback chain as text, with its keys in a fixed order."""
    if not isinstance(value, Mapping):
        return str(value)
    names = sorted(value, key=lambda name: (FIRST_NAMES.get(name, len(FIRST_NAMES)), name))
    return ", ".join(f"{name} {as_text(value[name])}" for name in names)


def _is_line(section: str, key: str) -> bool:
    if section:
        return not (section == "breaker" and key in ALIASES)
    return key not in UNSHOWN and key not in SECTIONS


def _policy_line(path: str, key: str, value: Any) -> PolicyLine:
    known = HELP.get(path)
    default = known.default if known else None
    if isinstance(default, tuple):
        default = list(default)
    text = as_text(value)
    unit = known.unsaid_unit if known and text != "–" else ""
    return PolicyLine(
        path=path,
        name=known.label if known else key.replace("_", " ").capitalize(),
        value=f"{text} {unit}".strip(),
        help=known.help if known else "",
        is_default=known is not None and value == default,
    )


def _item_text(value: Any) -> str:
    if isinstance(value, Mapping) and "pattern" in value and "timeout_ms" in value:
        return f"{value['pattern']} {value['timeout_ms']} ms"
    return hop_line(value)
