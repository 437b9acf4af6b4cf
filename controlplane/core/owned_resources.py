"""Registry of the resources that teams can own, and the list of those that no team owns.

Apps register kinds of resources in modules named `owned_resources`.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from controlplane.core import authority
from controlplane.core.registry import KindRegistry


@dataclass(frozen=True)
class OwnedKind:
    """A kind of resources that teams can own, such as SLOs.

    `list_names` returns the resources (`slo:checkout`), sorted; `find_paths` returns the paths of
    the pages of some, by resource. `noun` names one of them.
    """

    name: str
    noun: str
    plural: str
    position: int
    list_names: Callable[[], Iterable[str]]
    find_paths: Callable[[Collection[str]], Mapping[str, str]]


@dataclass(frozen=True)
class OwnedResource:
    """A resource, such as `slo:checkout`, and its kind."""

    name: str
    kind: OwnedKind


OWNED_KINDS = KindRegistry[OwnedKind]("owned_resources", order=attrgetter("position"))


def list_resources(*kinds: str) -> list[OwnedResource]:
    """Return the known resources of these kinds, by default of all."""
    return [OwnedResource(name, kind) for kind, name in _list_names(kinds)]


def list_unowned(*kinds: str) -> list[OwnedResource]:
    """Return the known resources of these kinds, by default of all, that no team owns."""
    teams = authority.read_teams()
    return [
        OwnedResource(name, kind)
        for kind, name in _list_names(kinds)
        if teams.owner_of(name) is None
    ]


def _list_names(kinds: Collection[str]) -> Iterator[tuple[OwnedKind, str]]:
    for kind in OWNED_KINDS.values():
        if not kinds or kind.name in kinds:
            for name in kind.list_names():
                yield kind, name


def find_paths(resources: Iterable[OwnedResource]) -> dict[str, str]:
    """Return the paths of the pages of resources, by name."""
    names: dict[str, list[str]] = defaultdict(list)
    for one in resources:
        names[one.kind.name].append(one.name)
    return {
        name: path
        for kind, found in names.items()
        for name, path in OWNED_KINDS[kind].find_paths(found).items()
    }
