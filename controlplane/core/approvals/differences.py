"""The changes that a request would make, for its page and its messages. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from controlplane.core.audit.differences import Change, changes


def list_changes(kind: str, diff: Mapping[str, Any]) -> list[Change]:
    """Return the fields of a request's `diff` as changes.

    A list of two values is before and after; any other value stays as it is. A review changes
    nothing any more, so its fields are unchanged.
    """
    if kind == "break_glass_review":
        told = json.dumps({name: _listed(value) for name, value in diff.items()})
        return changes(told, told)
    short = {name: value for name, value in diff.items() if not _is_table(value)}
    before = {name: _listed(_pair(value)[0]) for name, value in short.items()}
    after = {name: _listed(_pair(value)[1]) for name, value in short.items()}
    return changes(json.dumps(before), json.dumps(after))


def _is_table(value: Any) -> bool:
    """Return True for rows with fields, such as the steps of a plan: the page words them."""
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


def _pair(value: Any) -> tuple[Any, Any]:
    if isinstance(value, list) and len(value) == 2:
        return value[0], value[1]
    return value, value


def _listed(value: Any) -> Any:
    """Return names as one text and booleans as yes or no; anything else as it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return value
