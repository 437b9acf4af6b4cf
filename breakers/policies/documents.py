"""Flattened values of policy documents, and differences between documents. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

COLUMNS = (
    "protocol", "criticality", "mode", "owner", "runbook_url", "notes", "managed_by",
)  # fmt: skip
"""Fields that a dependency's row also has as columns."""
EMPTY: tuple[Any, ...] = (None, "", [], {})


@dataclass(frozen=True)
class Difference:
    """A value that differs between two documents; None on the side where it is missing."""

    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.path}: {render_value(self.before)} → {render_value(self.after)}"


def iterate_values(document: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of a document with its path (`breaker.open_seconds`).

    Objects are descended into, also those in lists.
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
    """Return the values that differ between two documents, in the order of `after`.

    Values that only `before` has come last.
    """
    was, becomes = dict(iterate_values(before or {})), dict(iterate_values(after or {}))
    return [
        Difference(path, old, new)
        for path in dict.fromkeys([*becomes, *was])
        if (old := was.get(path)) != (new := becomes.get(path))
        and not (old in EMPTY and new in EMPTY)
    ]


def render_value(value: Any) -> str:
    """Return a value as text for people, a dash if it is empty."""
    if value in EMPTY:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(render_value, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {render_value(one)}" for name, one in value.items())
    return str(value)
