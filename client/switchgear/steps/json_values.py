"""Validation of the values that a store of jobs keeps: JSON and text."""

import json
from collections.abc import Iterator, Mapping
from typing import Any


def json_value(value: Any, what: str) -> Any:
    """Return a copy of `value` that went through JSON, as a store would return it.

    Raises :class:`TypeError`, with `what` as the name of the value, if the value is not JSON.
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{what} must be JSON: {error!s:.200}") from None


def copy_json(stored: Any) -> Any:
    """Return a deep copy of a stored JSON value, which a step may change."""
    return json.loads(json.dumps(stored))


def require_text(text: Any, what: str, *, may_be_empty: bool = False) -> str:
    """Return `text` if a store can keep it.

    Raises :class:`TypeError` for anything but a string, and :class:`ValueError` for an empty text
    or one with an unpaired surrogate. `what` is the name of the text in their messages.
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a string, not {type(text).__name__}")
    if not text and not may_be_empty:
        raise ValueError(f"{what} must not be empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} must be Unicode, not {text!a:.100}") from None
    return text


class CopiedOutputs(Mapping[str, Any]):
    """The outputs of earlier steps by name, each copied at its first access.

    A step may change the copies.
    """

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self._stored = stored
        self._copies: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._copies:
            self._copies[name] = copy_json(self._stored[name])
        return self._copies[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)
