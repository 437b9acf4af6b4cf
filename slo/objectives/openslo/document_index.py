"""An index of OpenSLO documents by kind and name, to resolve their references. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controlplane.core.json_values import Errors, add_error, escape_surrogates

VERSION = "openslo/v1"
SLO, SLI, SOURCE = "SLO", "SLI", "DataSource"
POLICY, CONDITION = "AlertPolicy", "AlertCondition"
SERVICE, NOTIFIED = "Service", "AlertNotificationTarget"
KINDS = (SLO, SLI, SOURCE, POLICY, CONDITION, SERVICE, NOTIFIED)
LEFT_OUT = (SERVICE, NOTIFIED)
"""Kinds that are not imported; only their names are checked."""


@dataclass(frozen=True)
class OpenSloEntry:
    """A document, or a part inside another; `place` is its path, for people."""

    place: str
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]

    @property
    def name(self) -> str:
        name = self.metadata.get("name")
        return name if isinstance(name, str) else ""

    def note(self, annotation: str) -> str:
        """Return the value of an annotation, empty if there is none."""
        found = as_mapping(self.metadata.get("annotations")).get(annotation)
        return found if isinstance(found, str) else ""


@dataclass
class DocumentIndex:
    """Entries by kind and name, errors, and remarks."""

    entries: dict[tuple[str, str], OpenSloEntry] = field(default_factory=dict)
    slos: list[OpenSloEntry] = field(default_factory=list)
    errors: Errors = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def wrong(self, place: str, said: str) -> None:
        add_error(self.errors, place, said)

    def remark(self, place: str, said: str) -> None:
        """Add a remark, once."""
        if (text := escape_surrogates(f"{place}: {said}")) not in self.remarks:
            self.remarks.append(text)

    def meant(self, kind: str, given: Any, reference: str, place: str) -> OpenSloEntry | None:
        """Return an inline document of this kind, or the one it refers to by name."""
        if not isinstance(given, Mapping):
            self.wrong(place, f"Must be an object: {reference}, or the {kind} itself.")
            return None
        if reference not in given:
            return make_entry(given, place)
        found = self.entries.get((kind, str(given[reference])))
        if found is None:
            self.wrong(f"{place}.{reference}", f"There is no {kind} of that name among these.")
        return found


def index_documents(documents: Sequence[Any]) -> DocumentIndex:
    """Index the documents; invalid ones are added as errors."""
    shelf = DocumentIndex()
    for place, given in _numbered(documents):
        if not isinstance(given, Mapping):
            shelf.wrong(place, "Must be an object with apiVersion, kind, metadata and spec.")
            continue
        if given.get("apiVersion") != VERSION:
            shelf.wrong(f"{place}.apiVersion", f"Must be {VERSION}.")
            continue
        kind = given.get("kind")
        if kind not in KINDS:
            shelf.wrong(f"{place}.kind", f"Must be one of {', '.join(KINDS)}.")
            continue
        entry = make_entry(given, place)
        if not entry.name:
            shelf.wrong(f"{place}.metadata.name", "Give it a name.")
        elif (kind, entry.name) in shelf.entries:
            shelf.wrong(f"{place}.metadata.name", f"There is another {kind} of that name.")
        else:
            shelf.entries[kind, entry.name] = entry
            if kind == SLO:
                shelf.slos.append(entry)
            elif kind in LEFT_OUT:
                shelf.remark(place, f"The {kind} {entry.name} was left out: it is not kept here.")
    if not shelf.slos and not shelf.errors:
        shelf.wrong("documents", "There is no SLO among these.")
    return shelf


def make_entry(given: Mapping[str, Any], place: str) -> OpenSloEntry:
    """Return a document, or an inline part of one, as an entry."""
    return OpenSloEntry(place, as_mapping(given.get("metadata")), as_mapping(given.get("spec")))


def as_mapping(given: Any) -> Mapping[str, Any]:
    """Return a mapping, empty if it is none."""
    return given if isinstance(given, Mapping) else {}


def _numbered(documents: Sequence[Any]) -> Iterable[tuple[str, Any]]:
    """Yield documents with their paths, without empty ones between two separators."""
    return (
        (f"documents.{place}", given) for place, given in enumerate(documents) if given is not None
    )
