"""The plan of loading a configuration folder: changes compared to the registry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from breakers.models import Dependency
from breakers.policies import configuration
from breakers.policies.configuration import ConfigurationFolder, locate_field
from breakers.policies.differences import list_differences
from controlplane.core.configuration.readers import (
    CHANGED,
    KEPT,
    NEW,
    SAME,
    EntryChange,
    LoadOptions,
)
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.errors import InvalidInput

from . import catalog, registry

ACTIONS = [
    f"{kind}.{did}"
    for kind in ("dependency", "service", "channel")
    for did in ("registered", "changed", "removed")
]

State = dict[str, Any]


@dataclass(frozen=True)
class RegistryWrite:
    """A service, channel or dependency to write; `before` is None if it is not registered yet."""

    kind: str
    name: str
    before: State | None
    after: State


@dataclass(frozen=True)
class LoadPlan:
    changes: tuple[EntryChange, ...]
    writes: tuple[RegistryWrite, ...]
    remarks: tuple[str, ...]
    elsewhere: tuple[str, ...]
    """Registered dependencies that no file names; they are left alone."""

    def writes_of(self, kind: str) -> list[RegistryWrite]:
        return [one for one in self.writes if one.kind == kind]


def build_plan(folder: ConfigurationFolder, options: LoadOptions) -> LoadPlan:
    """Return the changes that loading the folder would make to the registry.

    Raise :class:`InvalidInput` with the errors of all files.
    """
    run = _Comparison(folder, options, find_manual_edits(ACTIONS))
    registered_states = {
        row.name: registry.registered_state(row) for row in Dependency.objects.registered()
    }
    _compare_services(run)
    _compare_channels(run)
    _compare_dependencies(run, registered_states)
    if run.errors:
        raise InvalidInput(run.errors)
    registered = {name for name, state in registered_states.items() if state is not None}
    return LoadPlan(
        tuple(run.changes),
        tuple(run.writes),
        folder.remarks,
        tuple(sorted(registered - folder.dependencies.keys())),
    )


@dataclass
class _Comparison:
    folder: ConfigurationFolder
    options: LoadOptions
    edited: Mapping[str, str]
    errors: dict[str, list[str]] = field(default_factory=dict)
    changes: list[EntryChange] = field(default_factory=list)
    writes: list[RegistryWrite] = field(default_factory=list)

    def compare(
        self,
        kind: str,
        name: str,
        before: State | None,
        check: Callable[[], State],
        place: Callable[[str], str],
    ) -> None:
        """Compare an entry of the files with the registry; add the result to `changes` or `errors`.

        `check` returns the validated entry; `place` maps a field's path to its file and key.
        """
        by_hand = self.edited.get(f"{kind}:{name}", "")
        if self.options.keeps(by_hand, is_present=before is not None):
            self.changes.append(EntryChange(kind, name, KEPT, edited=by_hand))
            return
        try:
            after = check()
        except InvalidInput as error:
            self.errors.update({place(path): messages for path, messages in error.errors.items()})
            return
        found = list_differences(before, after)
        outcome = NEW if before is None else CHANGED if found else SAME
        by_hand = by_hand if outcome != SAME else ""
        self.changes.append(EntryChange(kind, name, outcome, tuple(map(str, found)), by_hand))
        if before != after:
            self.writes.append(RegistryWrite(kind, name, before, after))


def _compare_services(run: _Comparison) -> None:
    folder, registered_states = run.folder, catalog.SERVICES.list_states()
    speaks_of_services = configuration.SERVICES in folder.files
    for slug in {**folder.services, **folder.retries}:
        before = registered_states.get(slug)
        if slug not in folder.services and (speaks_of_services or before is None):
            run.errors[f"{configuration.RETRY}: workers: {slug}"] = ["This service doesn't exist."]
            continue
        fields = {**folder.services[slug]} if slug in folder.services else {**(before or {})}
        if slug in folder.retries:
            fields["retry"] = folder.retries[slug]
        elif configuration.RETRY not in folder.files and before:
            fields.setdefault("retry", before["retry"])

        check = partial(catalog.validate_service, slug, fields)
        run.compare("service", slug, before, check, _file_location("services", slug))


def _compare_channels(run: _Comparison) -> None:
    registered_states = catalog.CHANNELS.list_states()
    for name, fields in run.folder.channels.items():
        before = registered_states.get(name)
        check = partial(catalog.validate_channel, name, fields)
        run.compare("channel", name, before, check, _file_location("channels", name))


def _compare_dependencies(run: _Comparison, registered_states: Mapping[str, State | None]) -> None:
    for name, fields in run.folder.dependencies.items():
        before = registered_states.get(name)
        if before is None and configuration.TIMEOUT not in run.folder.files:
            run.errors[name] = [
                f"It is not registered, and the folder has no {configuration.TIMEOUT}."
            ]
            continue
        unchanged = {field: (before or {}).get(field) for field in run.folder.silent_on}
        check = partial(registry.validate_fields, {**unchanged, **fields})
        run.compare("dependency", name, before, check, partial(locate_field, name))


def _file_location(part: str, name: str) -> Callable[[str], str]:
    return lambda path: f"{configuration.SERVICES}: {part}: {name}: {path}"
