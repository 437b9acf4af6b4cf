"""An index of OpenSLO documents by kind and name, to resolve their references. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slo.objectives.import_notes import ImportNotes, as_mapping

VERSION = "openslo/v1"
SLO, SLI, SOURCE = "SLO", "SLI", "DataSource"
POLICY, CONDITION = "AlertPolicy", "AlertCondition"
SERVICE, NOTIFIED = "Service", "AlertNotificationTarget"
KINDS = (SLO, SLI, SOURCE, POLICY, CONDITION, SERVICE, NOTIFIED)
LEFT_OUT = (SERVICE, NOTIFIED)
"""Kinds of documents that are not imported."""


@dataclass(frozen=True)
class OpenSloEntry:
    """An OpenSLO document, maybe embedded in another; `place` is its path in error messages."""

    place: str
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]

    @property
    def name(self) -> str:
        name = self.metadata.get("name")
        return name if isinstance(name, str) else ""

    def note(self, annotation: str) -> str:
        found = as_mapping(self.metadata.get("annotations")).get(annotation)
        return found if isinstance(found, str) else ""


@dataclass
class DocumentIndex(ImportNotes):
    """OpenSLO documents by kind and name, with errors and remarks collected while reading them."""

    entries: dict[tuple[str, str], OpenSloEntry] = field(default_factory=dict)
    slos: list[OpenSloEntry] = field(default_factory=list)

    def resolve(self, kind: str, raw: Any, reference: str, place: str) -> OpenSloEntry | None:
        """Return the document that `raw` embeds, or that it names in its field `reference`.

        If there is none of this kind and name, add an error at `place` and return None.
        """
        if not isinstance(raw, Mapping):
            self.wrong(place, f"Must be an object: {reference}, or the {kind} itself.")
            return None
        if reference not in raw:
            return make_entry(raw, place)
        found = self.entries.get((kind, str(raw[reference])))
        if found is None:
            self.wrong(f"{place}.{reference}", f"There is no {kind} of this name in the documents.")
        return found


def index_documents(documents: Sequence[Any]) -> DocumentIndex:
    """Return an index of the valid documents, with errors for the invalid ones."""
    index = DocumentIndex()
    for number, raw in enumerate(documents):
        if raw is None:
            continue  # Empty, between two separators.
        place = f"documents.{number}"
        if not isinstance(raw, Mapping):
            index.wrong(place, "Must be an object with apiVersion, kind, metadata and spec.")
            continue
        if raw.get("apiVersion") != VERSION:
            index.wrong(f"{place}.apiVersion", f"Must be {VERSION}.")
            continue
        kind = raw.get("kind")
        if kind not in KINDS:
            index.wrong(f"{place}.kind", f"Must be one of {', '.join(KINDS)}.")
            continue
        entry = make_entry(raw, place)
        if not entry.name:
            index.wrong(f"{place}.metadata.name", "Add a name.")
        elif (kind, entry.name) in index.entries:
            index.wrong(f"{place}.metadata.name", f"There is another {kind} of this name.")
        else:
            index.entries[kind, entry.name] = entry
            if kind == SLO:
                index.slos.append(entry)
            elif kind in LEFT_OUT:
                index.remark(
                    place, f"The {kind} {entry.name} was ignored: this kind is not supported."
                )
    if not index.slos and not index.errors:
        index.wrong("documents", "The documents contain no SLO.")
    return index


def make_entry(raw: Mapping[str, Any], place: str) -> OpenSloEntry:
    return OpenSloEntry(place, as_mapping(raw.get("metadata")), as_mapping(raw.get("spec")))
