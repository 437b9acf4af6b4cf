"""Field-by-field differences of an audit entry, for people to read. Pure."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Change:
    """A changed field of an audit entry, with `before` and `after` as text."""

    field: str
    before: str
    after: str
    changed: bool


def compare_texts(before: str, after: str) -> list[Change]:
    """Return the differing fields of two canonical JSON texts, then the equal ones."""
    old, new = _fields(before), _fields(after)
    found = [
        Change(
            field=name.replace("_", " "),
            before=_shown(old.get(name)),
            after=_shown(new.get(name)),
            changed=old.get(name) != new.get(name),
        )
        for name in dict.fromkeys([*new, *old])
    ]
    return sorted(found, key=lambda change: not change.changed)


def _fields(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if value is None:
        return {}
    return value if isinstance(value, dict) else {"value": value}


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
