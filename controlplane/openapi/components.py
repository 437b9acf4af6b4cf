"""Names of the OpenAPI components, which become class names of generated clients.

Serializers are named `SwitchShape` (responses) and `EngageBody` (requests); their components are
`Switch`, `EngageRequest`, and `SwitchPage` for a list.
"""

import re
from typing import Any

PREFIX = "#/components/schemas/"
_RULES = (
    (re.compile(r"^Paginated(\w+)List$"), "{}Page"),
    (re.compile(r"^(?:Patched)?(\w+)Body$"), "{}Request"),
    (re.compile(r"^(\w+)Shape$"), "{}"),
)


def rename_components(document: dict[str, Any]) -> None:
    """Rename all components in place; raise ValueError if two would have the same name."""
    schemas = document["components"]["schemas"]
    names = {old: name_of(old) for old in schemas}
    if len(set(names.values())) < len(names):
        twice = sorted(name for name in names.values() if list(names.values()).count(name) > 1)
        raise ValueError(f"Several components have the same name: {', '.join(twice)}.")
    document["components"]["schemas"] = {names[old]: schemas[old] for old in schemas}
    _update_references(document, {PREFIX + old: PREFIX + new for old, new in names.items()})


def name_of(serializer: str) -> str:
    """Return the public component name made from a serializer's name."""
    for pattern, name in _RULES:
        if found := pattern.match(serializer):
            inner = found[1]
            return name.format(name_of(inner) if inner.endswith(("Shape", "Body")) else inner)
    return serializer


def _update_references(value: Any, targets: dict[str, str]) -> None:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            value["$ref"] = targets.get(value["$ref"], value["$ref"])
        for key, target in value.get("mapping", {}).items() if "propertyName" in value else ():
            value["mapping"][key] = targets.get(target, target)
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, dict | list):
            _update_references(child, targets)
