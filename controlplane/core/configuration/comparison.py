"""Comparison of the entries of a configuration file with those in the database."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controlplane.core.configuration.readers import (
    CHANGED,
    KEPT,
    NEW,
    SAME,
    Document,
    EntryChange,
    Loaded,
    LoadOptions,
)
from controlplane.core.errors import InvalidInput
from controlplane.core.json_values import Errors

EMPTY: tuple[Any, ...] = (None, "", [], {})


@dataclass(frozen=True)
class PlannedWrite:
    """An entry to write; `before` is None if it is new."""

    name: str
    before: Document | None
    after: Document


@dataclass
class Comparison:
    """The comparison of one kind of entries, which :meth:`compare` fills entry by entry.

    `edited` are manual edits by audit target.
    """

    kind: str
    options: LoadOptions
    edited: Mapping[str, str] = field(default_factory=dict)
    errors: Errors = field(default_factory=dict)
    changes: list[EntryChange] = field(default_factory=list)
    writes: list[PlannedWrite] = field(default_factory=list)

    def compare(
        self,
        name: str,
        before: Document | None,
        check: Callable[[], Document],
        *,
        place: str,
        target: str = "",
        note: str = "",
    ) -> None:
        """Compare an entry with its present state; add the result to `changes` or `errors`.

        `check` returns the validated entry or raises :class:`InvalidInput`. `place` is the entry's
        file and key, `target` its audit target, by default its name. `note` is that of a change.
        """
        by_hand = self.edited.get(target or name, "")
        if self.options.keeps(by_hand, is_present=before is not None):
            self.changes.append(EntryChange(self.kind, name, KEPT, edited=by_hand))
            return
        try:
            after = check()
        except InvalidInput as error:
            self.errors.update({f"{place}: {path}": found for path, found in error.errors.items()})
            return
        if before == after:
            self.changes.append(EntryChange(self.kind, name, SAME))
            return
        outcome = CHANGED if before else NEW
        differences = tuple(describe_differences(before, after)) if before else ()
        self.changes.append(EntryChange(self.kind, name, outcome, differences, by_hand, note))
        self.writes.append(PlannedWrite(name, before, after))

    def require_valid(self) -> None:
        """Raise :class:`InvalidInput` with the errors of all entries, if there are any."""
        if self.errors:
            raise InvalidInput(self.errors)

    def result(self, present: Mapping[str, Any], audit_rows: list[dict[str, Any]]) -> Loaded:
        """Return the result of the load; entries that are only in `present` are elsewhere."""
        named = {change.name for change in self.changes}
        elsewhere = tuple(f"{self.kind} {name}" for name in present if name not in named)
        return Loaded(tuple(self.changes), (), elsewhere, audit_rows)


def describe_differences(before: Document, after: Document) -> list[str]:
    """Return a line for each field that differs, such as `owner: – → Core`."""
    return [
        f"{name}: {_as_text(before.get(name))} → {_as_text(after.get(name))}"
        for name in dict.fromkeys([*after, *before])
        if before.get(name) != after.get(name)
    ]


def drop_empty(document: Document) -> Document:
    """Return the document without fields that are None or empty."""
    return {name: value for name, value in document.items() if value not in EMPTY}


def shortest_form(
    full: Document, defaults: Mapping[str, Any], complete: Callable[[Document], Document]
) -> Document:
    """Return `full` without fields that have their default, if `complete` restores them.

    `complete` validates an entry and fills in defaults; a default may depend on other fields, so
    the short form is tried first, then the one without empty fields.
    """
    short = {name: value for name, value in full.items() if value != defaults.get(name)}
    for candidate in (drop_empty(short), short, drop_empty(full)):
        try:
            if complete(candidate) == complete(full):
                return candidate
        except InvalidInput:
            continue
    return full


def _as_text(value: Any) -> str:
    if value in EMPTY:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text.split())
