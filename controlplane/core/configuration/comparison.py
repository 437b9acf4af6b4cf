"""Comparison of the entries of a configuration file with those in the database."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Protocol, Self, TypeVar

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


def describe_differences(before: Document | None, after: Document) -> list[str]:
    """Return a line for each field that differs, such as `owner: – → Core`; none of a new entry."""
    if before is None:
        return []
    return [
        f"{name}: {_as_text(before.get(name))} → {_as_text(after.get(name))}"
        for name in dict.fromkeys([*after, *before])
        if before.get(name) != after.get(name)
    ]


@dataclass
class Comparison:
    """The comparison of one kind of entries, which :meth:`compare` fills entry by entry.

    `file` prefixes the errors, unless `locate(name, path)` returns their place. `present` maps
    names to the current entries, `edited` maps audit targets (`audit_prefix` and a name) to manual
    edits. `note` is added to each change.
    `describe` returns the differences; an entry without any counts as unchanged, but is written.
    """

    kind: str
    file: str
    present: Mapping[str, Document]
    options: LoadOptions
    edited: Mapping[str, str] = field(default_factory=dict)
    errors: Errors = field(default_factory=dict)
    _: KW_ONLY
    audit_prefix: str = ""
    note: str = ""
    locate: Callable[[str, str], str] | None = None
    describe: Callable[[Document | None, Document], Iterable[object]] = describe_differences
    changes: list[EntryChange] = field(default_factory=list, init=False)
    writes: list[PlannedWrite] = field(default_factory=list, init=False)

    def compare(self, name: str, check: Callable[[], Document]) -> None:
        """Compare an entry with its present state; add the result to `changes` or `errors`.

        `check` returns the validated entry or raises :class:`InvalidInput`.
        """
        before = self.present.get(name)
        by_hand = self.edited.get(f"{self.audit_prefix}{name}", "")
        if self.options.keeps(by_hand, is_present=before is not None):
            self.changes.append(EntryChange(self.kind, name, KEPT, edited=by_hand))
            return
        try:
            after = check()
        except InvalidInput as error:
            self.errors.update(
                {self._locate(name, path): found for path, found in error.errors.items()}
            )
            return
        differences = tuple(map(str, self.describe(before, after))) if before != after else ()
        if before is None or differences:
            outcome = NEW if before is None else CHANGED
            change = EntryChange(self.kind, name, outcome, differences, by_hand, self.note)
        else:
            change = EntryChange(self.kind, name, SAME)
        self.changes.append(change)
        if before != after:
            self.writes.append(PlannedWrite(name, before, after))

    def compare_all(
        self,
        entries: Mapping[str, dict[str, Any]],
        check: Callable[[str, dict[str, Any]], Document],
    ) -> Self:
        """Compare all entries of a file; raise :class:`InvalidInput` if one is invalid."""
        for name, fields in entries.items():
            self.compare(name, partial(check, name, fields))
        self.require_valid()
        return self

    def require_valid(self) -> None:
        """Raise :class:`InvalidInput` with the errors of all entries, if there are any."""
        if self.errors:
            raise InvalidInput(self.errors)

    @property
    def has_changes(self) -> bool:
        return bool(self.writes)

    def count_new(self) -> int:
        return sum(one.before is None for one in self.writes)

    def build_result(self, audit_rows: Sequence[dict[str, Any]] = ()) -> Loaded:
        """Return the result of the load, with the entries that the file doesn't name."""
        named = {change.name for change in self.changes}
        elsewhere = tuple(f"{self.kind} {name}" for name in self.present if name not in named)
        return Loaded(tuple(self.changes), (), elsewhere, audit_rows)

    def _locate(self, name: str, path: str) -> str:
        return self.locate(name, path) if self.locate else f"{self.file}: {name}: {path}"


class Plan(Protocol):
    """The planned changes of a file, such as a :class:`Comparison`."""

    @property
    def has_changes(self) -> bool: ...

    def build_result(self, audit_rows: Sequence[dict[str, Any]] = ()) -> Loaded: ...


AnyPlan = TypeVar("AnyPlan", bound=Plan)


def compare_and_write(
    compare: Callable[[], AnyPlan],
    lock: Callable[[], object],
    write: Callable[[AnyPlan], Sequence[dict[str, Any]]],
    options: LoadOptions,
) -> Loaded:
    """Compare a file's entries and write the changes; take no lock without changes or in a dry run.

    `write` gets the plan that `compare` returns under the lock, and returns its audit rows.
    """
    plan = compare()
    if options.dry_run or not plan.has_changes:
        return plan.build_result()
    lock()
    plan = compare()  # Again, as an entry may have changed before the lock.
    return plan.build_result(write(plan))


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
