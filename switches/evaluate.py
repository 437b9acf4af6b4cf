"""Decision whether switches allow a call.

Switches are checked by scope in registered order (global first), and within a scope in the given
order; the first blocking switch decides.
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
    """The fields of a snapshot entry or episode that determine when clients end it."""

    @property
    def state(self) -> str: ...
    @property
    def on_expiry(self) -> str: ...
    @property
    def expires_at(self) -> datetime | None: ...


@dataclass(frozen=True, slots=True)
class CallQuestion:
    """A check request: the switches to check, in decision order, and the targeting key."""

    switch_ids: tuple[str, ...] = (GLOBAL_ID,)
    targeting_key: str | None = None

    @classmethod
    def naming(cls, keys: Mapping[str, Iterable[str]], targeting_key: str | None = None) -> Self:
        """Return a check request for these keys by field, such as `{"segments": ["finance"]}`."""
        ids = [
            f"{scope}:{key}"
            for field, scope in question_fields().items()
            for key in keys.get(field, ())
        ]
        return cls((GLOBAL_ID, *ids), targeting_key)


@dataclass(frozen=True, slots=True)
class CallDecision:
    """The result of a check; `switch` and `reason` are None if the call is allowed."""

    allowed: bool
    switch: str | None = None
    reason: str | None = None


def read_question(document: Mapping[str, Any]) -> CallQuestion:
    """Return the check request in a JSON object, or raise :class:`InvalidInput`.

    Unknown fields are errors, because ignoring a misspelled field would let blocked traffic
    through.
    """
    fields = question_fields()
    allowed = (*fields, "targeting_key")
    errors = {
        field: [f"Unknown; the fields are {', '.join(allowed)}."]
        for field in document
        if field not in allowed
    }
    for field in fields:
        keys = document.get(field, [])
        if not isinstance(keys, list) or not all(
            isinstance(key, str) and KEY.fullmatch(key) for key in keys
        ):
            errors[field] = ["Must be a list of keys: 1 to 120 letters, digits, `.`, `_` or `-`."]
    if not isinstance(document.get("targeting_key"), str | None):
        errors["targeting_key"] = ["Must be a string or null."]
    if errors:
        raise InvalidInput(errors)
    return CallQuestion.naming(document, document.get("targeting_key"))


def evaluate(
    question: CallQuestion, entries: Mapping[str, SnapshotEntry], *, now: datetime, draw: Draw
) -> CallDecision:
    """Return whether the checked switches allow the call.

    `entries` are the published switches by id; all other switches count as released.
    """
    for switch_id in question.switch_ids:
        entry = entries.get(switch_id)
        if entry is not None and _blocks(entry, question.targeting_key, now, draw):
            return CallDecision(allowed=False, switch=entry.id, reason=entry.reason)
    return CallDecision(allowed=True)


def lapses_at(entry: Expiring) -> datetime | None:
    """Return when clients release an engaged switch by themselves: 5 s after its expiry.

    Return None for other states, and for other expiry policies than `release`.
    """
    if entry.state != "engaged" or entry.on_expiry != "release" or entry.expires_at is None:
        return None
    return entry.expires_at + EXPIRY_GRACE


def _blocks(entry: SnapshotEntry, targeting_key: str | None, now: datetime, draw: Draw) -> bool:
    if entry.state == "ramping":
        return not admits(entry.allow_percent, entry.salt, targeting_key, draw)
    lapses = lapses_at(entry)
    return lapses is None or now < lapses
