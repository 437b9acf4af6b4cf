"""PATCH operations on the JSON document of a resource (RFC 7644, section 3.5.2).

Two differences from the RFC, for clients such as Entra ID: a `remove` of a multi-valued attribute
with a `value` removes only these values, and attributes outside of the schema are ignored.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from .errors import InvalidRequest
from .filters import Path, find_equal_values, matches, parse_path
from .schemas import READ_ONLY, Attribute, ResourceType

MAX_OPERATIONS = 1000
Document = dict[str, Any]


def apply_patch(
    resource: ResourceType, document: Mapping[str, Any], body: Mapping[str, Any]
) -> Any:
    """Return the document after the operations of a PATCH body.

    Raises :class:`InvalidRequest` for operations that can't be carried out.
    """
    operations = _find(body, "Operations")
    if not isinstance(operations, list) or not operations:
        raise InvalidRequest("invalidSyntax", "Operations must be a list of operations.")
    if len(operations) > MAX_OPERATIONS:
        raise InvalidRequest("tooMany", f"A request can have at most {MAX_OPERATIONS} operations.")
    changed = deepcopy(dict(document))
    for operation in operations:
        if not isinstance(operation, dict):
            raise InvalidRequest("invalidSyntax", "Each operation must be an object.")
        _apply(resource, changed, operation)
    return changed


def _apply(resource: ResourceType, document: Document, operation: Mapping[str, Any]) -> None:
    kind = str(_find(operation, "op")).casefold()
    if kind not in {"add", "replace", "remove"}:
        raise InvalidRequest("invalidSyntax", "op must be add, replace or remove.")
    text, value = _find(operation, "path"), _find(operation, "value")
    if text is not None and not isinstance(text, str):
        raise InvalidRequest("invalidPath", "path must be a text.")
    if text:
        _change(resource, document, kind, parse_path(text), value)
        return
    if kind == "remove":
        raise InvalidRequest("noTarget", "remove needs a path.")
    if not isinstance(value, dict):
        raise InvalidRequest(
            "invalidValue", "Without a path, value must be an object of attributes."
        )
    for name, one in flatten(value):
        # Entra ID sends paths such as name.familyName as names of attributes.
        _change(resource, document, kind, parse_path(name), one)


def flatten(document: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Yield attributes by name, without `schemas` and the attributes of other schemas."""
    for name, value in document.items():
        if name.casefold() != "schemas" and not (":" in name and isinstance(value, dict)):
            yield name, value


def _change(resource: ResourceType, document: Document, kind: str, path: Path, value: Any) -> None:
    attribute = resource.find(path.attribute)
    if attribute is None and path.attribute.casefold() not in {"id", "meta"}:
        return
    if attribute is None or attribute.mutability == READ_ONLY:
        raise InvalidRequest("mutability", f"{path.attribute} can't be changed.")
    if attribute.multi_valued:
        _change_values(attribute, document, kind, path, value)
        return
    if path.inner is not None:
        raise InvalidRequest("invalidPath", f"{attribute.name} has a single value.")
    if path.sub:
        _change_sub(attribute, document, kind, path.sub, value)
    elif kind == "remove" or value is None:
        if attribute.required:
            raise InvalidRequest("mutability", f"{attribute.name} is required.")
        document.pop(attribute.name, None)
    elif attribute.sub and isinstance(value, dict):
        for name, one in value.items():
            _change_sub(attribute, document, kind, name, one)
    else:
        document[attribute.name] = value


def _change_sub(attribute: Attribute, document: Document, kind: str, name: str, value: Any) -> None:
    sub = _find_sub(attribute, name)
    if sub is None:
        return
    parts = document.get(attribute.name) or {}
    if not isinstance(parts, dict):
        raise InvalidRequest("invalidValue", f"{attribute.name} must be an object.")
    parts = dict(parts)
    parts.pop(sub.name, None)
    if kind != "remove" and value is not None:
        parts[sub.name] = value
    document[attribute.name] = parts


def _change_values(
    attribute: Attribute, document: Document, kind: str, path: Path, value: Any
) -> None:
    """Change the values of a multi-valued attribute, or those that the path's filter selects."""
    present: list[Document] = list(document.get(attribute.name) or [])
    given = read_values(attribute, value) if value is not None and not path.sub else []
    if path.inner is None and not path.sub:
        if kind == "replace":
            present = _merge([], given)
        elif kind == "add":
            present = _merge(present, given)
        else:
            removed = {_key(each) for each in given}
            present = [each for each in present if removed and _key(each) not in removed]
        document[attribute.name] = present
        return
    selected = [
        place
        for place, each in enumerate(present)
        if path.inner is None or matches(path.inner, each)
    ]
    if not selected and kind == "replace":
        raise InvalidRequest("noTarget", f"No value of {attribute.name} matches the path.")
    if not selected and kind == "add":
        known = find_equal_values(path.inner) if path.inner is not None else {}
        if known is None:
            raise InvalidRequest("noTarget", f"No value of {attribute.name} matches the path.")
        present, selected = [*present, _read_value(attribute, known)], [len(present)]
    changes = {path.sub: value} if path.sub else (given[0] if len(given) == 1 else {})
    if kind == "remove" and not path.sub:
        document[attribute.name] = [
            each for place, each in enumerate(present) if place not in set(selected)
        ]
        return
    for place in selected:
        present[place] = _merge_value(attribute, present[place], changes, kind)
    document[attribute.name] = _keep_one_primary(present, selected)


def read_values(attribute: Attribute, value: Any) -> list[Document]:
    """Return the values of a multi-valued attribute, with known names; a single one is a list."""
    values = value if isinstance(value, list) else [value]
    return [_read_value(attribute, each) for each in values]


def _read_value(attribute: Attribute, value: Any) -> Document:
    if not isinstance(value, dict):
        raise InvalidRequest("invalidValue", f"Values of {attribute.name} must be objects.")
    known = ((_find_sub(attribute, str(name)), one) for name, one in value.items())
    return {sub.name: one for sub, one in known if sub is not None and one is not None}


def _merge_value(
    attribute: Attribute, present: Document, changes: Mapping[str, Any], kind: str
) -> Document:
    merged = dict(present)
    for name, one in changes.items():
        sub = _find_sub(attribute, name)
        if sub is None:
            continue
        merged.pop(sub.name, None)
        if kind != "remove" and one is not None:
            merged[sub.name] = one
    return merged


def _merge(present: list[Document], added: list[Document]) -> list[Document]:
    """Return the values with those that are not there yet; only one stays primary."""
    merged = {_key(each): each for each in present}
    before = len(merged)
    for each in added:
        merged[_key(each)] = each
    values = list(merged.values())
    return _keep_one_primary(values, range(before if present else 0, len(values)))


def _keep_one_primary(values: list[Document], changed: Iterable[int]) -> list[Document]:
    """Take the mark primary from all but the last changed value that has it."""
    primary = [place for place in changed if values[place].get("primary") is True]
    if not primary:
        return values
    return [
        {name: one for name, one in each.items() if name != "primary"}
        if each.get("primary") is True and place != primary[-1]
        else each
        for place, each in enumerate(values)
    ]


def _key(value: Document) -> tuple[str, str]:
    return str(value.get("value", "")).casefold(), str(value.get("type", "")).casefold()


def _find_sub(attribute: Attribute, name: str) -> Attribute | None:
    wanted = name.casefold()
    return next((each for each in attribute.sub if each.name.casefold() == wanted), None)


def _find(document: Mapping[str, Any], name: str) -> Any:
    """Return the value of a name in any case; None if it is missing."""
    wanted = name.casefold()
    return next((value for key, value in document.items() if key.casefold() == wanted), None)
