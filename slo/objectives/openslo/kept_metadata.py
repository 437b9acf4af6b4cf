"""Names and labels of OpenSLO documents that an SLO keeps, and their export. Pure."""

from collections.abc import Mapping
from typing import Any

from slo.objectives.import_notes import read_labels

from .document_index import DocumentIndex, OpenSloEntry

OURS = "switchgear/"


def collect(
    index: DocumentIndex,
    entry: OpenSloEntry,
    indicator: OpenSloEntry,
    objective: Mapping[str, Any],
    name: str,
) -> dict[str, Any]:
    """Return an SLO's metadata, not validated; names that an export would make anyway are left out.

    `name` is the SLO's.
    """
    annotations = read_labels(entry.metadata.get("annotations"))
    display_name = objective.get("displayName")
    found = {
        "display_name": entry.metadata.get("displayName"),
        "labels": read_labels(entry.metadata.get("labels")),
        "annotations": {
            key: value for key, value in annotations.items() if not str(key).startswith(OURS)
        },
        "indicator": indicator.name if indicator.name != indicator_name(name) else None,
        "indicator_display_name": indicator.metadata.get("displayName"),
        "indicator_labels": read_labels(indicator.metadata.get("labels")),
        "objective": display_name if display_name != name else None,
    }
    if indicator.spec.get("description"):
        index.remark(indicator.place, "The description of the indicator was ignored.")
    return {key: value for key, value in found.items() if value}


def indicator_name(name: str) -> str:
    """Return the name of the indicator in exports of an SLO that keeps none."""
    return f"{name}-indicator"


def export_names(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an exported document's metadata, without name and annotations."""
    return _export(metadata, {"display_name": "displayName", "labels": "labels"})


def export_indicator(metadata: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the metadata of the indicator in the export of the SLO `name`."""
    fields = {"indicator_display_name": "displayName", "indicator_labels": "labels"}
    return {
        "name": metadata.get("indicator", indicator_name(name)),
        **_export(metadata, fields),
    }


def _export(metadata: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    return {theirs: metadata[ours] for ours, theirs in fields.items() if metadata.get(ours)}
