"""What a request would change, as its page and its messages show it. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from controlplane.core.audit.differences import Change, changes


def shown(kind: str, diff: Mapping[str, Any]) -> list[Change]:
    """The fields of a request's `diff`: a list of two is before and after, all else stays as is.

    A review changes nothing any more: its fields only tell what was done.
    """
    if kind == "break_glass_review":
        told = json.dumps({name: _listed(value) for name, value in diff.items()})
        return changes(told, told)
    short = {name: value for name, value in diff.items() if not _is_table(value)}
    before = {name: _listed(_pair(value)[0]) for name, value in short.items()}
    after = {name: _listed(_pair(value)[1]) for name, value in short.items()}
    return changes(json.dumps(before), json.dumps(after))


def _is_table(value: Any) -> bool:
    """Rows with fields, such as the steps of a plan: the page has words of its own for those."""
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


def _pair(value: Any) -> tuple[Any, Any]:
    if isinstance(value, list) and len(value) == 2:
        return value[0], value[1]
    return value, value


def _listed(value: Any) -> Any:
    """Names one after the other, yes and no; anything else as it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return value
