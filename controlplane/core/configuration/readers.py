"""Readers of configuration files, which apps register in modules `configuration_files`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Protocol

from controlplane.core.actors import Actor
from controlplane.core.registry import KindRegistry

NEW, CHANGED, SAME, KEPT = "new", "changed", "same", "kept"
OUTCOMES = (NEW, CHANGED, SAME, KEPT)
REASON = "config load"
"""Reason of the audit rows of a load, by which :func:`find_manual_edits` knows them."""

Document = dict[str, Any]
Finish = Callable[[], Mapping[tuple[str, str], int]]
"""Last part of a load; it returns the ids of approval requests by kind and name of the entry."""


@dataclass(frozen=True)
class EntryChange:
    """The outcome of loading one entry of a configuration file, such as a service.

    `differences` are readable descriptions of the changes. `edited` is the author and time of a
    manual change since the last load, or "" if there is none. `note` says what else the change
    needs, `approval` is the id of the request that it waits for, 0 without one.
    """

    kind: str
    name: str
    outcome: str
    differences: tuple[str, ...] = ()
    edited: str = ""
    note: str = ""
    approval: int = 0


@dataclass(frozen=True)
class Loaded:
    """The result of loading configuration files, or of a dry run.

    `audit_rows` are rows for the audit trail, written last. `finish` are called before that, and
    after the loads of all files, because they lock the trail. `elsewhere` are the names of entries
    in the database that no file mentions; loading leaves them unchanged.
    """

    changes: tuple[EntryChange, ...] = ()
    remarks: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    audit_rows: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    finish: tuple[Finish, ...] = field(default=(), repr=False)

    def count(self, *outcomes: str) -> int:
        return sum(change.outcome in outcomes for change in self.changes)

    def __add__(self, other: "Loaded") -> "Loaded":
        return Loaded(
            self.changes + other.changes,
            self.remarks + other.remarks,
            self.elsewhere + other.elsewhere,
            (*self.audit_rows, *other.audit_rows),
            (*self.finish, *other.finish),
        )

    def complete(self) -> "Loaded":
        """Return the result after the calls of `finish`, with the requests for approval."""
        requests = {key: pk for finish in self.finish for key, pk in finish().items()}
        changes = tuple(
            replace(one, approval=requests.get((one.kind, one.name), one.approval))
            for one in self.changes
        )
        return replace(self, changes=changes, finish=())


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options of a load: its actor and time, and which present entries stay unchanged.

    With `keep_edited`, these are manually changed ones; with `only_new`, all. A dry run changes
    nothing.
    """

    actor: Actor
    now: datetime
    keep_edited: bool = False
    only_new: bool = False
    dry_run: bool = False

    def keeps(self, edited: str, *, is_present: bool) -> bool:
        """Return True if an entry must stay as it is; `edited` is its manual change, or ""."""
        return is_present if self.only_new else self.keep_edited and bool(edited)


class Load(Protocol):
    """The type of functions that store an app's entries, given the texts of its files by name.

    Runs in the caller's transaction, after the caller's check of permissions. Entries missing from
    the texts stay unchanged. Raises :class:`InvalidInput` with file and key. The caller writes the
    returned audit rows at the end.
    """

    def __call__(self, texts: Mapping[str, str], options: LoadOptions) -> Loaded: ...


SampleTimes = Mapping[tuple[str, str], datetime]
"""Times when entries were loaded from the shipped configuration, by kind and name."""


@dataclass(frozen=True)
class SampleItem:
    """An entry of the shipped configuration; `kept` says why clearing keeps it, "" if it does not.

    An entry that was changed since it was loaded is kept, as is one that is in use.
    """

    kind: str
    name: str
    kept: str = ""


class ListSamples(Protocol):
    """The type of functions that return those of the loaded entries that still exist."""

    def __call__(self, loaded: SampleTimes) -> list[SampleItem]: ...


class RemoveSamples(Protocol):
    """The type of functions that remove the entries that `ListSamples` returns without `kept`.

    Returns all items, and audit rows that the caller writes at the end of the transaction.
    """

    def __call__(
        self, loaded: SampleTimes, *, now: datetime
    ) -> tuple[list[SampleItem], list[dict[str, Any]]]: ...


def list_no_samples(loaded: SampleTimes) -> list[SampleItem]:
    """Return nothing, for kinds of which Switchgear ships no entries."""
    return []


def remove_no_samples(
    loaded: SampleTimes, *, now: datetime
) -> tuple[list[SampleItem], list[dict[str, Any]]]:
    return [], []


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Configuration files that belong together, and the functions to load and export them.

    `export` returns the present state as one document for each file; loading it changes nothing.
    `schemas` returns the JSON Schema of each file. `kinds` are the kinds of entries with their
    plurals. Readers run in the order of `position`, so that concurrent loads can't deadlock, and
    entries that refer to others come after them.
    """

    name: str
    position: int
    files: tuple[str, ...]
    load: Load
    export: Callable[[], dict[str, Document]]
    schemas: Callable[[], dict[str, Document]]
    kinds: Mapping[str, str]
    list_samples: ListSamples = list_no_samples
    remove_samples: RemoveSamples = remove_no_samples


class FileModule(Protocol):
    """A module that loads, exports and describes one configuration file."""

    FILE: str

    def load_file(self, texts: Mapping[str, str], options: LoadOptions) -> Loaded: ...

    def export_documents(self) -> dict[str, Document]: ...

    def build_schema(self) -> Document: ...


def build_reader(module: FileModule, position: int, kinds: Mapping[str, str]) -> Reader:
    """Return the reader of a module's file, named after the file without `.yaml`."""
    return Reader(
        name=module.FILE.removesuffix(".yaml"),
        position=position,
        files=(module.FILE,),
        load=module.load_file,
        export=module.export_documents,
        schemas=lambda: {module.FILE: module.build_schema()},
        kinds=kinds,
    )


READERS = KindRegistry[Reader]("configuration_files", order=attrgetter("position"))


def list_files() -> list[str]:
    """Return the names of all configuration files, in load order."""
    return [name for reader in READERS.values() for name in reader.files]
