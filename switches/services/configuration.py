"""The configuration file `switches.yaml`: owner, description and runbook of switches by id."""

from collections.abc import Mapping
from typing import Any

from controlplane.core.configuration import schemas
from controlplane.core.configuration.comparison import Comparison, compare_and_write, drop_empty
from controlplane.core.configuration.files import read_entry_file
from controlplane.core.configuration.readers import Document, Loaded, LoadOptions
from controlplane.core.configuration.schemas import Schema
from controlplane.core.configuration.services import find_manual_edits
from controlplane.core.errors import InvalidInput
from switches import publication
from switches.models import Switch
from switches.scopes import KEY_PATTERN, SCOPES
from switches.services import registration

FILE, PART = "switches.yaml", "switches"
ACTION = "registration.changed"


def load_file(texts: Mapping[str, str], options: LoadOptions) -> Loaded:
    """Register the switches of the file and set their fields; missing fields become empty.

    Whether a switch is engaged is not part of the configuration.
    """
    entries, errors = read_entry_file(FILE, texts[FILE], PART)
    edited = find_manual_edits([ACTION])

    def compare() -> Comparison:
        found = Comparison("switch", FILE, read_states(), options, edited, dict(errors))
        return found.compare_all(entries, check_entry)

    def write(found: Comparison) -> list[dict[str, Any]]:
        registration.write_many({one.name: one.after for one in found.writes}, options.now)
        return [
            {"action": ACTION, "target": one.name, "before": one.before, "after": one.after}
            for one in found.writes
        ]

    return compare_and_write(compare, publication.lock, write, options)


def check_entry(switch_id: str, fields: Mapping[str, Any]) -> Document:
    """Return the complete entry of a switch; raise :class:`InvalidInput`."""
    scope, _, key = switch_id.partition(":")
    registration.identify(scope, key)
    given = {name: value for name, value in fields.items() if value is not None}
    if wrong := [name for name, value in given.items() if not isinstance(value, str)]:
        raise InvalidInput({name: ["Must be a string."] for name in wrong})
    registration.check_fields(given)
    return {**dict.fromkeys(registration.DESCRIPTIVE, ""), **given}


def read_states() -> dict[str, Document]:
    """Return the described fields of all registered switches by id."""
    rows = Switch.objects.order_by("pk").values("pk", *registration.DESCRIPTIVE)
    return {row.pop("pk"): row for row in rows}


def export_documents() -> dict[str, Document]:
    return {FILE: {PART: {name: drop_empty(one) for name, one in read_states().items()}}}


def build_schema() -> Schema:
    texts = {name: schemas.text(longest) for name, longest in registration.DESCRIPTIVE.items()}
    texts["runbook_url"] = schemas.web_url(registration.DESCRIPTIVE["runbook_url"])
    entry = schemas.nullable(schemas.fields(texts))
    named = {PART: schemas.entries(entry, switch_pattern(), "Switches by id: feature:nl2sql.")}
    return schemas.file_schema("Switches", named, "Who owns a switch, and what it stops.")


def switch_pattern(*, with_global: bool = True) -> str:
    """Return the regular expression of switch ids, for JSON Schema."""
    forms = [
        f"{one.name}:{one.only_key}" if one.only_key else f"{one.name}:{KEY_PATTERN}"
        for one in SCOPES.values()
        if with_global or not one.only_key
    ]
    return f"^({'|'.join(forms)})$"
