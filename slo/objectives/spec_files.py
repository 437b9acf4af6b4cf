"""Parsing of SLO documents of other tools: OpenSLO, Sloth and Pyrra, in any mix. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.core.errors import InvalidInput

from . import documents, pyrra, sloth
from .import_notes import ImportNotes
from .openslo import parser

MAX_DOCUMENTS = parser.MAX_DOCUMENTS


def parse_documents(raw: Sequence[Any], *, server: str = "") -> documents.ParsedSlos:
    """Return the SLOs of all documents.

    `server` is the Prometheus URL for documents that name none. Raise :class:`InvalidInput` naming
    document and field.
    """
    raw = [one for document in raw for one in _list_items(document)]
    if len(raw) > MAX_DOCUMENTS:
        raise InvalidInput({"documents": [f"At most {MAX_DOCUMENTS:,} documents per import."]})
    foreign = {number: one for number, one in enumerate(raw) if _reader(one) is not None}
    # Placeholders keep the numbers of the others in error messages.
    rest = [None if number in foreign else one for number, one in enumerate(raw)]
    notes, slos = ImportNotes(), dict[str, documents.Document]()
    if any(one is not None for one in rest) or not foreign:
        try:
            parsed = parser.parse_documents(rest, server=server)
        except InvalidInput as error:
            notes.errors.update({path: list(texts) for path, texts in error.errors.items()})
        else:
            slos.update(parsed.slos)
            notes.remarks += parsed.remarks
    for number, document in foreign.items():
        read = _reader(document)
        for place, name, fields in read(notes, document, f"documents.{number}", server):
            if name in slos:
                notes.wrong(place, f"The documents contain another SLO {name}.")
                continue
            try:
                slos[name] = documents.validate(name, fields)
            except InvalidInput as error:
                for field, texts in error.errors.items():
                    notes.errors.setdefault(f"{place}: {field}", []).extend(texts)
    if notes.errors:
        raise InvalidInput(notes.errors)
    return documents.ParsedSlos(slos, tuple(notes.remarks))


def _list_items(document: Any) -> Sequence[Any]:
    """Return the items of a Kubernetes list, as `kubectl get -o yaml` writes it."""
    if isinstance(document, Mapping) and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]


def _reader(document: Any) -> Any:
    """Return the function that reads a document of Sloth or Pyrra; None for others."""
    if not isinstance(document, Mapping):
        return None
    if sloth.is_sloth(document):
        return sloth.read_document
    return pyrra.read_document if pyrra.is_pyrra(document) else None
