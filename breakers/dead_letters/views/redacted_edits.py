"""Merge of hidden values into JSON that was edited in redacted form. Pure."""

from typing import Any

from breakers.dead_letters.letters import lossless_json
from breakers.dead_letters.letters.redaction import REDACTED

MOVED = "Hidden values, and items beside them in a list, must stay in place."


def restore_hidden(typed: str, original: bytes, shown: bytes) -> str:
    """Return the edited JSON `typed` in compact form, with hidden values taken from `original`.

    `shown` is `original` with hidden values redacted, as it was before the edit. Raises
    `ValueError` for invalid JSON, and if a hidden value was moved or copied, since it could appear
    in an unintended place.
    """
    trees = (lossless_json.parse_json(one) for one in (typed, original, shown))
    return lossless_json.to_json(_merge(*trees))


def _merge(typed: Any, original: Any, shown: Any) -> Any:
    text = lossless_json.to_json(typed)
    if REDACTED not in text:
        return typed
    if text == lossless_json.to_json(shown):
        return original
    if lossless_json.is_object(typed) and lossless_json.is_object(shown):
        before, after = _unique_members(original), _unique_members(shown)
        return type(typed)(
            (name, _merge_member(name, member, before, after)) for name, member in typed
        )
    if _same_length(typed, shown) and _same_length(original, shown):
        # Elements may have been moved, so one with a hidden value has to be unchanged.
        triples = list(zip(typed, original, shown, strict=True))
        texts = [
            (lossless_json.to_json(new), lossless_json.to_json(old)) for new, _, old in triples
        ]
        if all(REDACTED not in new or new == old for new, old in texts):
            return [
                before if REDACTED in new else element
                for (element, before, _), (new, _) in zip(triples, texts, strict=True)
            ]
    raise ValueError(MOVED)


def _merge_member(name: str, typed: Any, original: dict[str, Any], shown: dict[str, Any]) -> Any:
    if REDACTED not in lossless_json.to_json(typed):
        return typed
    if name not in shown or name not in original:
        raise ValueError(MOVED)
    return _merge(typed, original[name], shown[name])


def _same_length(one: Any, other: Any) -> bool:
    lists = all(
        isinstance(each, list) and not lossless_json.is_object(each) for each in (one, other)
    )
    return lists and len(one) == len(other)


def _unique_members(members: Any) -> dict[str, Any]:
    names = [name for name, _ in members]
    return {name: member for name, member in members if names.count(name) == 1}
