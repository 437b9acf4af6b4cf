"""Loader of configuration folders; apps register readers in modules `configuration_files`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import structlog
from django.conf import settings
from django.db import transaction

from controlplane.core.actors import Actor
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry
from controlplane.core.configuration import files
from controlplane.core.configuration.models import SampleEntry
from controlplane.core.errors import InvalidInput
from controlplane.core.registry import KindRegistry

SHIPPED = "config"
CONSOLE = ("user", "token", "slack")
"""Actor types whose changes count as manual."""
NEW, CHANGED, SAME, KEPT = "new", "changed", "same", "kept"
REASON = "config load"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class EntryChange:
    """The outcome of loading one entry of a configuration file, such as a service.

    `differences` are readable descriptions of the changes. `edited` is the author and time of a
    manual change since the last load, or "" if there is none.
    """

    kind: str
    name: str
    outcome: str
    differences: tuple[str, ...] = ()
    edited: str = ""


@dataclass(frozen=True)
class Loaded:
    """The result of loading configuration files, or of a dry run.

    `audit_rows` are rows for the audit trail, written last. `elsewhere` are the names of entries in
    the database that no file mentions; loading leaves them unchanged.
    """

    changes: tuple[EntryChange, ...] = ()
    remarks: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    audit_rows: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    def count(self, outcome: str) -> int:
        return sum(change.outcome == outcome for change in self.changes)

    def __add__(self, other: "Loaded") -> "Loaded":
        return Loaded(
            self.changes + other.changes,
            self.remarks + other.remarks,
            self.elsewhere + other.elsewhere,
            (*self.audit_rows, *other.audit_rows),
        )


class Load(Protocol):
    """The type of functions that store an app's entries, given the texts of its files by name.

    Runs in the caller's transaction. Entries missing from the texts stay unchanged. With
    `keep_edited`, manually changed entries stay unchanged too; with `only_new`, all present ones.
    Raises :class:`InvalidInput` with file and key. The caller writes the returned audit rows at the
    end.
    """

    def __call__(
        self,
        texts: dict[str, str],
        *,
        keep_edited: bool,
        only_new: bool = False,
        dry_run: bool,
        actor: Actor,
        now: datetime,
    ) -> Loaded: ...


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


@dataclass(frozen=True)
class Reader:
    """The configuration files of the app `name`, in load order, and the function to load them.

    `kinds` are the kinds of its entries with their plurals.
    """

    name: str
    files: tuple[str, ...]
    load: Load
    kinds: Mapping[str, str]
    list_samples: ListSamples
    remove_samples: RemoveSamples


# Sorted, so that concurrent loads can't deadlock.
READERS = KindRegistry[Reader]("configuration_files", order=attrgetter("name"))


def load_folder(
    folder: Path,
    *,
    only: str = "",
    keep_edited: bool = False,
    only_new: bool = False,
    dry_run: bool = False,
    actor: Actor,
    now: datetime,
) -> Loaded:
    """Load the configuration files in a folder, all or those of the app `only`, in one transaction.

    With `only_new`, entries that exist stay unchanged.

    Raises :class:`InvalidInput` with file and key of every problem, and :class:`Conflict` if a
    limit is reached; then nothing has changed.
    """
    readers = [reader for reader in READERS.values() if only in ("", reader.name)]
    names = [name for reader in readers for name in reader.files]
    texts = files.read_files(folder, names)
    if not texts:
        raise InvalidInput({"folder": [f"The folder has none of {', '.join(names)}."]})
    errors: dict[str, list[str]] = {}
    loaded = Loaded()
    with transaction.atomic():
        for reader in readers:
            own = {name: texts[name] for name in reader.files if name in texts}
            if not own:
                continue
            try:
                loaded += reader.load(
                    own,
                    keep_edited=keep_edited,
                    only_new=only_new,
                    dry_run=dry_run,
                    actor=actor,
                    now=now,
                )
            except InvalidInput as error:
                errors.update(error.errors)
        if errors:
            raise InvalidInput(errors)
        audit.record_many([{**row, "actor": actor, "now": now} for row in loaded.audit_rows])
    return loaded


def load_shipped(name: str = "", *, actor: Actor, now: datetime) -> Loaded:
    """Load what is missing of the configuration that Switchgear ships, of one app or of all.

    The new entries are marked as samples.
    """
    folder = Path(settings.BASE_DIR) / SHIPPED
    files_of_apps = [reader.files for reader in READERS.values() if name in ("", reader.name)]
    if not any((folder / file).is_file() for own in files_of_apps for file in own):
        return Loaded()
    with transaction.atomic():
        loaded = load_folder(folder, only=name, only_new=True, actor=actor, now=now)
        SampleEntry.objects.bulk_create(
            [
                SampleEntry(kind=one.kind, name=one.name, loaded_at=now)
                for one in loaded.changes
                if one.outcome == NEW
            ],
            update_conflicts=True,
            unique_fields=["kind", "name"],
            update_fields=["loaded_at"],
        )
    log.info("config.loaded", folder=SHIPPED, app=name or "all", entries=loaded.count(NEW))
    return loaded


def find_manual_edits(actions: Sequence[str]) -> dict[str, str]:
    """Return who last changed each entry by hand, and when, by the entry's audit target.

    `actions` are the audit actions of such changes, for example `service.changed`.
    """
    last = (
        AuditEntry.objects.filter(action__in=actions)
        .order_by("target", "-id")
        .distinct("target")
        .values_list("target", "actor_type", "actor_name", "action", "at")
    )
    return {
        target: f"{action.partition('.')[2]} by {kind}:{name} on {at:%Y-%m-%d %H:%M} UTC"
        for target, kind, name, action, at in last
        if kind in CONSOLE
    }
