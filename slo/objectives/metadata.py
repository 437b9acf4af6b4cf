"""Names and labels that an SLO keeps from the document that it was imported from. Pure.

They have no effect; exports return them.
"""

from collections.abc import Mapping
from typing import Any

from controlplane.core import json_values
from controlplane.core.json_values import Errors, add_error

TEXTS = ("display_name", "objective", "indicator", "indicator_display_name")
MAPS = ("labels", "annotations", "indicator_labels")
FIELDS = (*TEXTS, *MAPS)
MAX_LABELS = 100
MAX_NAME_LENGTH = 320
MAX_VALUE_LENGTH = 2000
MAX_VALUES = 50
"""Maximum number of values of one label, which can be a list in OpenSLO."""


def read_metadata(raw: Any, errors: Errors) -> dict[str, Any]:
    """Return valid metadata without empty fields; add errors for invalid ones."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        add_error(errors, "metadata", "Must be an object.")
        return {}
    json_values.refuse_unknown("metadata", raw, FIELDS, errors)
    found: dict[str, Any] = {
        name: json_values.read_text(f"metadata.{name}", raw.get(name), MAX_VALUE_LENGTH, errors)
        for name in TEXTS
    }
    found |= {name: _read_labels(f"metadata.{name}", raw.get(name), errors) for name in MAPS}
    return {name: value for name, value in found.items() if value}


def describe_metadata(metadata: Mapping[str, Any]) -> str:
    """Return metadata in lines of words: `labels: team=shop`."""
    lines = []
    for name in FIELDS:
        value = metadata.get(name)
        if isinstance(value, Mapping):
            value = ", ".join(f"{key}={_join(each)}" for key, each in sorted(value.items()))
        if value:
            lines.append(f"{name.replace('_', ' ')}: {value}")
    return "\n".join(lines)


def _join(value: Any) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)


def _read_labels(path: str, raw: Any, errors: Errors) -> dict[str, str | list[str]]:
    if raw is None:
        return {}
    if not isinstance(raw, Mapping) or len(raw) > MAX_LABELS:
        add_error(errors, path, f"Must be an object with at most {MAX_LABELS} entries.")
        return {}
    found: dict[str, str | list[str]] = {}
    for name, value in raw.items():
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_LENGTH:
            add_error(errors, path, f"Names must have 1 to {MAX_NAME_LENGTH} characters.")
        elif isinstance(value, list) and len(value) <= MAX_VALUES:
            found[name] = [
                json_values.read_text(f"{path}.{name}", each, MAX_VALUE_LENGTH, errors)
                for each in value
            ]
        else:
            found[name] = json_values.read_text(f"{path}.{name}", value, MAX_VALUE_LENGTH, errors)
    return found
