"""Field-by-field differences of audit entries. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AuditChange:
    """A field of an audit entry, with its values before and after the action as text."""

    field: str
    before: str
    after: str
    changed: bool


def compare_texts(before: str, after: str) -> list[AuditChange]:
    """Compare two canonical JSON texts; return the changed fields, then the equal ones."""
    return compare_fields(_load_fields(before), _load_fields(after))


def compare_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[AuditChange]:
    """Compare two JSON objects; return the changed fields, then the equal ones."""
    changes = [
        AuditChange(
            field=name.replace("_", " "),
            before=_format_value(old.get(name)),
            after=_format_value(new.get(name)),
            changed=old.get(name) != new.get(name),
        )
        for name in dict.fromkeys([*new, *old])
    ]
    return sorted(changes, key=lambda change: not change.changed)


def _load_fields(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"value": value}


def _format_value(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
