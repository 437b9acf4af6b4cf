"""The decision whether a call may go on, by the switches that are not released. Pure.

Scopes decide in their registered order (global first), and within a scope keys in the order asked;
the first switch that blocks decides, and is named with its reason.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, Self

from controlplane.core.errors import InvalidInput
from switches.bucketing import Draw, admits
from switches.scopes import GLOBAL_ID, KEY, question_fields
from switches.snapshot import SnapshotEntry

EXPIRY_GRACE = timedelta(seconds=5)


class Expiring(Protocol):
    """Fields that determine when an engagement ends by itself, of an entry or an episode."""

    @property
    def state(self) -> str: ...
    @property
    def on_expiry(self) -> str: ...
    @property
    def expires_at(self) -> datetime | None: ...


@dataclass(frozen=True, slots=True)
class Question:
    """A call to decide on: the switches to check, in decision order, and its targeting key."""

    switch_ids: tuple[str, ...] = (GLOBAL_ID,)
    targeting_key: str | None = None

    @classmethod
    def naming(cls, keys: Mapping[str, Iterable[str]], targeting_key: str | None = None) -> Self:
        """Return the question about keys by field: `{"segments": ["finance"]}`."""
        ids = [
            f"{scope}:{key}"
            for field, scope in question_fields().items()
            for key in keys.get(field, ())
        ]
        return cls((GLOBAL_ID, *ids), targeting_key)


@dataclass(frozen=True, slots=True)
class Decision:
    """`switch` and `reason` name what blocks; both are None when the call may go on."""

    allowed: bool
    switch: str | None = None
    reason: str | None = None


def read_question(document: Mapping[str, Any]) -> Question:
    """Return the question in a JSON object; raise :class:`InvalidInput` for each wrong field.

    An unknown field is refused, as a misspelled one would let blocked traffic through.
    """
    fields = question_fields()
    known = (*fields, "targeting_key")
    errors = {
        field: [f"Unknown; the fields are {', '.join(known)}."]
        for field in document
        if field not in known
    }
    for field in fields:
        if not _are_keys(document.get(field, [])):
            errors[field] = ["Must be a list of keys: 1 to 120 letters, digits, `.`, `_` or `-`."]
    if not isinstance(document.get("targeting_key"), str | None):
        errors["targeting_key"] = ["Must be a string or null."]
    if errors:
        raise InvalidInput(errors)
    return Question.naming(document, document.get("targeting_key"))


def evaluate(
    question: Question, entries: Mapping[str, SnapshotEntry], *, now: datetime, draw: Draw
) -> Decision:
    """Decide by the published `entries`, by switch id; a missing one lets traffic flow."""
    for switch_id in question.switch_ids:
        entry = entries.get(switch_id)
        if entry is not None and _blocks(entry, question.targeting_key, now, draw):
            return Decision(allowed=False, switch=entry.id, reason=entry.reason)
    return Decision(allowed=True)


def lapses_at(entry: Expiring) -> datetime | None:
    """Return the time at which an engagement ends by its own policy, published or not."""
    if entry.state != "engaged" or entry.on_expiry != "release" or entry.expires_at is None:
        return None
    return entry.expires_at + EXPIRY_GRACE


def _blocks(entry: SnapshotEntry, targeting_key: str | None, now: datetime, draw: Draw) -> bool:
    if entry.state == "ramping":
        return not admits(entry.allow_percent, entry.salt, targeting_key, draw)
    lapses = lapses_at(entry)
    return lapses is None or now < lapses


def _are_keys(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(key, str) and KEY.fullmatch(key) for key in value
    )
