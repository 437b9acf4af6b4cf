"""The plan of loading a configuration folder: changes compared to the registry."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from breakers.policies import configuration
from breakers.policies.configuration import ConfigurationFolder, locate_field
from breakers.policies.differences import list_differences
from controlplane.core.configuration.comparison import Comparison
from controlplane.core.configuration.readers import Loaded, LoadOptions
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.json_values import Errors

from . import catalog, registry

ACTIONS = [
    f"{kind}.{did}"
    for kind in ("dependency", "service", "channel")
    for did in ("registered", "changed", "removed")
]

State = dict[str, Any]


@dataclass(frozen=True)
class LoadPlan:
    """The planned changes of the registry, by kind of entries."""

    services: Comparison
    channels: Comparison
    dependencies: Comparison
    remarks: tuple[str, ...]

    @property
    def has_changes(self) -> bool:
        kinds = (self.services, self.channels, self.dependencies)
        return any(one.has_changes for one in kinds)

    def build_result(self, audit_rows: Sequence[dict[str, Any]] = ()) -> Loaded:
        """Return the result, which lists dependencies that no file names, but nothing else."""
        catalog_changes = (*self.services.changes, *self.channels.changes)
        loaded = self.dependencies.build_result(audit_rows)
        return Loaded(catalog_changes, self.remarks) + loaded


def build_plan(folder: ConfigurationFolder, options: LoadOptions) -> LoadPlan:
    """Return the changes that loading the folder would make to the registry.

    Raise :class:`InvalidInput` with the errors of all files, or :class:`Conflict` if there would be
    too many dependencies.
    """
    errors: Errors = {}
    edited = find_manual_edits(ACTIONS)

    def create_comparison(
        kind: str,
        present: Mapping[str, State],
        file: str = "",
        locate: Callable[[str, str], str] | None = None,
    ) -> Comparison:
        return Comparison(
            *(kind, file, present, options, edited, errors),
            audit_prefix=f"{kind}:",
            locate=locate,
            describe=list_differences,
        )

    file = configuration.SERVICES
    services = create_comparison("service", catalog.SERVICES.list_states(), f"{file}: services")
    channels = create_comparison("channel", catalog.CHANNELS.list_states(), f"{file}: channels")
    dependencies = create_comparison("dependency", registry.list_states(), locate=locate_field)
    _compare_services(services, folder)
    for name, fields in folder.channels.items():
        channels.compare(name, partial(catalog.validate_channel, name, fields))
    _compare_dependencies(dependencies, folder)
    dependencies.require_valid()
    registry.require_capacity(dependencies.count_new())
    return LoadPlan(services, channels, dependencies, folder.remarks)


def _compare_services(found: Comparison, folder: ConfigurationFolder) -> None:
    has_services_file = configuration.SERVICES in folder.files
    for slug in {**folder.services, **folder.retries}:
        before = found.present.get(slug)
        if slug not in folder.services and (has_services_file or before is None):
            place = f"{configuration.RETRY}: workers: {slug}"
            found.errors[place] = ["This service doesn't exist."]
            continue
        fields = {**folder.services[slug]} if slug in folder.services else {**(before or {})}
        if slug in folder.retries:
            fields["retry"] = folder.retries[slug]
        elif configuration.RETRY not in folder.files and before:
            fields.setdefault("retry", before["retry"])
        found.compare(slug, partial(catalog.validate_service, slug, fields))


def _compare_dependencies(found: Comparison, folder: ConfigurationFolder) -> None:
    for name, fields in folder.dependencies.items():
        before = found.present.get(name)
        if before is None and configuration.TIMEOUT not in folder.files:
            found.errors[name] = [
                f"It is not registered, and the folder has no {configuration.TIMEOUT}."
            ]
            continue
        unchanged = {field: (before or {}).get(field) for field in folder.silent_on}
        found.compare(name, partial(registry.validate_fields, {**unchanged, **fields}))
