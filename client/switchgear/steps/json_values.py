"""What may be kept: JSON, and words."""

import json
from collections.abc import Iterator, Mapping
from typing import Any


def plain(value: Any, what: str) -> Any:
    """`value` as it comes back from a store: so a first run sees what a resumed one would. Raises
    :class:`TypeError`, naming `what`, if it is no JSON."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"{what} must be JSON: {error!s:.200}") from None


def copied(kept: Any) -> Any:
    """A copy of JSON that was kept, which a step may change as it likes."""
    return json.loads(json.dumps(kept))


def worded(text: Any, what: str, *, may_be_empty: bool = False) -> str:
    """`text`, if a store can keep it. Raises :class:`TypeError` for what is no string, and
    :class:`ValueError` for one that is empty or no Unicode (half of a surrogate pair), both naming
    `what`."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a string, not {type(text).__name__}")
    if not text and not may_be_empty:
        raise ValueError(f"{what} must not be empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} must be Unicode, not {text!a:.100}") from None
    return text


class Copies(Mapping[str, Any]):
    """Of outputs, each copied when it is asked for first."""

    def __init__(self, kept: Mapping[str, Any]) -> None:
        self._kept = kept
        self._copies: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._copies:
            self._copies[name] = copied(self._kept[name])
        return self._copies[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)
