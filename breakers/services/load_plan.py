"""The plan of loading a configuration folder: what would change. It writes nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from breakers.models import Dependency
from breakers.policies import configuration
from breakers.policies.configuration import ConfigurationFolder, locate_field
from breakers.policies.documents import list_differences
from controlplane.core.configuration.plans import CHANGED, KEPT, NEW, SAME, Change, edited_by_hand
from controlplane.core.errors import InvalidInput

from . import catalog, registry

ACTIONS = [
    f"{kind}.{did}"
    for kind in ("dependency", "service", "channel")
    for did in ("registered", "changed", "removed")
]

Said = dict[str, Any]


@dataclass(frozen=True)
class PlannedWrite:
    """An entry to write; `before` is None if it is not registered."""

    kind: str
    name: str
    before: Said | None
    after: Said


@dataclass(frozen=True)
class LoadPlan:
    changes: tuple[Change, ...]
    writes: tuple[PlannedWrite, ...]
    remarks: tuple[str, ...]
    elsewhere: tuple[str, ...]
    """Dependencies that are registered and stand in no file; they are left alone."""

    def writes_of(self, kind: str) -> list[PlannedWrite]:
        return [one for one in self.writes if one.kind == kind]


def build_plan(wanted: ConfigurationFolder, *, keep_edited: bool = False) -> LoadPlan:
    """Compare the files with the registry.

    Raises :class:`InvalidInput`, which names file and key of every fault.
    """
    run = _Comparison(wanted, keep_edited, edited_by_hand(ACTIONS))
    known = {row.name: registry.registered_state(row) for row in Dependency.objects.registered()}
    _compare_services(run)
    _compare_channels(run)
    _compare_dependencies(run, known)
    if run.errors:
        raise InvalidInput(run.errors)
    registered = {name for name, said in known.items() if said is not None}
    return LoadPlan(
        tuple(run.changes),
        tuple(run.writes),
        wanted.remarks,
        tuple(sorted(registered - wanted.dependencies.keys())),
    )


@dataclass
class _Comparison:
    wanted: ConfigurationFolder
    keep_edited: bool
    edited: Mapping[str, str]
    errors: dict[str, list[str]] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    writes: list[PlannedWrite] = field(default_factory=list)

    def compare(
        self,
        kind: str,
        name: str,
        before: Said | None,
        check: Callable[[], Said],
        place: Callable[[str], str],
    ) -> None:
        """Record the outcome for one entry, and its faults under their file and key."""
        by_hand = self.edited.get(f"{kind}:{name}", "")
        if by_hand and self.keep_edited:
            self.changes.append(Change(kind, name, KEPT, edited=by_hand))
            return
        try:
            after = check()
        except InvalidInput as error:
            self.errors.update({place(path): said for path, said in error.errors.items()})
            return
        found = list_differences(before, after)
        outcome = NEW if before is None else CHANGED if found else SAME
        by_hand = by_hand if outcome != SAME else ""
        self.changes.append(Change(kind, name, outcome, tuple(map(str, found)), by_hand))
        if before != after:
            self.writes.append(PlannedWrite(kind, name, before, after))


def _compare_services(run: _Comparison) -> None:
    wanted, known = run.wanted, catalog.SERVICES.list_states()
    speaks_of_services = configuration.SERVICES in wanted.files
    for slug in {**wanted.services, **wanted.retries}:
        before = known.get(slug)
        if slug not in wanted.services and (speaks_of_services or before is None):
            run.errors[f"{configuration.RETRY}: workers: {slug}"] = ["There is no such service."]
            continue
        fields = {**wanted.services[slug]} if slug in wanted.services else {**(before or {})}
        if slug in wanted.retries:
            fields["retry"] = wanted.retries[slug]
        elif configuration.RETRY not in wanted.files and before:
            fields.setdefault("retry", before["retry"])

        def check(slug: str = slug, fields: Said = fields) -> Said:
            return catalog.validate_service(slug, fields)

        run.compare("service", slug, before, check, _file_location("services", slug))


def _compare_channels(run: _Comparison) -> None:
    known = catalog.CHANNELS.list_states()
    for name, fields in run.wanted.channels.items():

        def check(name: str = name, fields: Said = fields) -> Said:
            return catalog.validate_channel(name, fields)

        run.compare("channel", name, known.get(name), check, _file_location("channels", name))


def _compare_dependencies(run: _Comparison, known: Mapping[str, Said | None]) -> None:
    for name, fields in run.wanted.dependencies.items():
        before = known.get(name)
        if before is None and configuration.TIMEOUT not in run.wanted.files:
            said = f"It is not registered, and {configuration.TIMEOUT} is not there."
            run.errors[name] = [said]
            continue
        kept = {field: (before or {}).get(field) for field in run.wanted.silent_on}
        whole = {**kept, **fields}

        def check(whole: Said = whole) -> Said:
            return registry.validate_fields(whole)

        def place(path: str, name: str = name) -> str:
            return locate_field(name, path)

        run.compare("dependency", name, before, check, place)


def _file_location(part: str, name: str) -> Callable[[str], str]:
    return lambda path: f"{configuration.SERVICES}: {part}: {name}: {path}"
