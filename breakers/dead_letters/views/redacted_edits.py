"""Restoring hidden values in JSON that was edited redacted. Pure."""

from typing import Any

from breakers.dead_letters.letters.redaction import REDACTED

from . import payload

MOVED = "What is hidden has to stay where it was, and so has what lies beside it in a list."


def restore_hidden(typed: str, original: bytes, shown: bytes) -> str:
    """Return what was typed over `shown`, with hidden values from `original`.

    The result is compact JSON.

    Raises `ValueError` for invalid JSON, and if a hidden value was moved or copied: it would end up
    in a place that the person did not mean.
    """
    trees = (payload.parse_json(one) for one in (typed, original, shown))
    return payload.to_json(_merge(*trees))


def _merge(typed: Any, original: Any, shown: Any) -> Any:
    said = payload.to_json(typed)
    if REDACTED not in said:
        return typed
    if said == payload.to_json(shown):
        return original
    if payload.is_object(typed) and payload.is_object(shown):
        before, after = _by_name(original), _by_name(shown)
        return type(typed)(
            (name, _merge_member(name, member, before, after)) for name, member in typed
        )
    if _same_length(typed, shown) and _same_length(original, shown):
        return [_merge_element(*three) for three in zip(typed, original, shown, strict=True)]
    raise ValueError(MOVED)


def _merge_member(name: str, typed: Any, original: dict[str, Any], shown: dict[str, Any]) -> Any:
    if REDACTED not in payload.to_json(typed):
        return typed
    if name not in shown or name not in original:
        raise ValueError(MOVED)
    return _merge(typed, original[name], shown[name])


def _merge_element(typed: Any, original: Any, shown: Any) -> Any:
    """Return an element.

    List elements are identified by their whole content, as they may have been moved.
    """
    said = payload.to_json(typed)
    if REDACTED not in said:
        return typed
    if said != payload.to_json(shown):
        raise ValueError(MOVED)
    return original


def _same_length(one: Any, other: Any) -> bool:
    lists = all(isinstance(each, list) and not payload.is_object(each) for each in (one, other))
    return lists and len(one) == len(other)


def _by_name(members: Any) -> dict[str, Any]:
    """Return the members with unique names."""
    names = [name for name, _ in members]
    return {name: member for name, member in members if names.count(name) == 1}
