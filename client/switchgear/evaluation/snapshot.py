"""The snapshot: the document that lists all switches that are not released, and its validation.

A malformed or damaged document is refused as a whole, so that the last good snapshot stays in
force.
"""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from types import MappingProxyType
from typing import Any, Literal

from switchgear.evaluation.bucketing import BUCKETS
from switchgear.evaluation.keys import key_text
from switchgear.evaluation.scopes import GLOBAL_ID, SCOPES

SCHEMA = 1
MAX_SWITCHES = 50_000
MAX_BYTES = 16 * 2**20
"""Maximum size of a published snapshot."""
MAX_SERVED_BYTES = MAX_BYTES * 9 // 4
"""Maximum size of a served one, which may hold the published one as text, with escaped quotes."""
POLL_SECONDS = 5.0
GRACE_SECONDS = 5.0
"""Seconds that an engagement with `on_expiry=release` continues past its expiry."""

_MAX_TOKENS = {b"{": 4 * MAX_SWITCHES, b"[": 4 * MAX_SWITCHES, b",": 32 * MAX_SWITCHES}
"""Maximum numbers of these characters in a document, to limit the memory for parsing."""
_KEY = re.compile(r"[A-Za-z0-9._-]{1,120}", re.ASCII)
_ORDER_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class InvalidSnapshot(ValueError):
    """Raised for a document that is not a snapshot. The message holds no secret."""


@dataclass(frozen=True, slots=True)
class SwitchEntry:
    """A switch that is engaged or ramping. Times are UNIX seconds by the console's clock."""

    id: str
    state: Literal["engaged", "ramping"]
    allow_points: int
    """The share of calls allowed, in hundredths of a percent."""
    salt: str
    reason: str
    expires_at: float | None
    on_expiry: str
    engaged_at: float | None = None
    emergency: str | None = None
    """The id of the emergency order that engages the switch; None for an episode."""

    @property
    def lapses_at(self) -> float | None:
        """The time when the engagement ends by itself, without a newer snapshot; None for never."""
        if self.state != "engaged" or self.on_expiry != "release" or self.expires_at is None:
            return None
        return self.expires_at + GRACE_SECONDS


def forced_entry(switch_id: str, reason: str) -> SwitchEntry:
    """Return the entry of a switch that is engaged in this process alone."""
    return SwitchEntry(switch_id, "engaged", 0, "", reason, None, "hold")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The switches that are not released, by id. `version` only grows within an `epoch`."""

    epoch: str
    version: int
    poll_seconds: float
    entries: Mapping[str, SwitchEntry]
    document: bytes
    """The received JSON."""
    published_at: float | None = None
    """UNIX seconds by the console's clock; None if the document has none."""
    open_orders: tuple[str, ...] = ()
    """The ids of emergency orders in force at the data plane that sent the snapshot."""
    closed_orders: tuple[str, ...] = ()
    """The ids of emergency orders that are no longer in force."""
    hidden_orders: Mapping[str, str] = field(default_factory=dict)
    """The switches of open emergency orders, by id, whose switch another entry engages."""
    signature: str = field(default="", compare=False)
    """The signature that came with the document, verified only if a public key is configured."""
    signed_entries: Mapping[str, SwitchEntry] | None = None
    """The switches of the signed text, if the document adds blocks to it and was verified."""

    @property
    def mark(self) -> str:
        """The identifier of this snapshot without emergency orders: `<epoch>.<version>`."""
        return f"{self.epoch}.{self.version}"


def parse_snapshot(
    document: bytes, before: Mapping[str, SwitchEntry] = MappingProxyType({})
) -> Snapshot:
    """Return the snapshot in a JSON document in UTF-8; raise :class:`InvalidSnapshot`.

    Unknown fields are ignored; an unknown `schema` is refused. Entries that are equal to those of
    the previous snapshot, `before`, are the same objects, so that two large snapshots share most of
    their memory and are quick to compare.
    """
    return parse_with_signed_text(document, before)[0]


def parse_with_signed_text(
    document: bytes, before: Mapping[str, SwitchEntry]
) -> tuple[Snapshot, str | None]:
    """Return the snapshot as :func:`parse_snapshot` does, and its field `signed`.

    A data plane that adds emergency orders or a drill to the published snapshot sends that one as
    text in this field. It is None if there is no such text.
    """
    check_size(document)
    try:
        content = json.loads(
            document,
            object_hook=_entry_hook(before),
            parse_float=_limited_decimal(),
            parse_constant=_reject_constant,
        )
    except InvalidSnapshot:
        raise
    except (ValueError, RecursionError, InvalidOperation) as error:
        raise InvalidSnapshot(f"It is not valid JSON: {type(error).__name__}.") from error
    if not isinstance(content, dict):
        raise InvalidSnapshot("It is not a JSON object.")
    if content.get("schema") != SCHEMA:
        raise InvalidSnapshot(f"Its schema is not {SCHEMA}.")
    version = content.get("version")
    if type(version) is not int or not 0 <= version < 2**63:
        raise _invalid_field("version")
    poll_seconds = _parse_number(content.get("poll_seconds"))
    if poll_seconds is None or not 1 <= poll_seconds <= 300:
        poll_seconds = Decimal(POLL_SECONDS)
    published_at = None
    with contextlib.suppress(InvalidSnapshot):
        published_at = _parse_timestamp(content, "published_at")
    emergency = content.get("emergency")
    orders = emergency if isinstance(emergency, dict) else {}
    signed = content.get("signed")
    snapshot = Snapshot(
        epoch=_parse_epoch(content.get("epoch")),
        version=version,
        poll_seconds=float(poll_seconds),
        entries=_parse_entries(content.get("switches")),
        document=document,
        published_at=published_at,
        open_orders=_parse_order_ids(orders.get("open")),
        closed_orders=_parse_order_ids(orders.get("closed")),
        hidden_orders=_parse_hidden_orders(orders.get("hidden")),
    )
    return snapshot, signed if isinstance(signed, str) else None


def check_size(document: bytes) -> None:
    """Raise :class:`InvalidSnapshot` for a document whose parsing would take too much memory."""
    if len(document) > MAX_SERVED_BYTES:
        raise InvalidSnapshot(f"It has more than {MAX_SERVED_BYTES} bytes.")
    if any(document.count(each) > most for each, most in _MAX_TOKENS.items()):
        raise InvalidSnapshot("It has more entries than a snapshot can have.")


def parse_order_entry(row: Mapping[str, Any]) -> SwitchEntry:
    """Return the entry of an emergency order; raise :class:`InvalidSnapshot` for any other row."""
    entry = _parse_entry(row)
    if entry.emergency is None:
        raise _invalid_field("emergency")
    return entry


def is_valid_key(text: object) -> bool:
    """Return True if a switch could have the key `text`."""
    return isinstance(text, str) and _KEY.fullmatch(text) is not None


def is_switch_id(text: str) -> bool:
    """Return True if `text` is a valid switch id, such as `segment:finance` or `global:all`."""
    name, _, key = text.partition(":")
    scope = SCOPES.get(name)
    return scope is not None and is_valid_key(key) and scope.only_key in ("", key)


def resolve_switch_id(name: str) -> str:
    """Return the id of the switch called `name`; `global` alone means `global:all`.

    Raise :class:`ValueError` for a string that is not a valid id, and :class:`TypeError` for a
    value that is neither a string nor an enum member with one.
    """
    text = key_text(name) if isinstance(name, str | Enum) else None
    if text is None:
        raise TypeError(
            f"a switch must be text such as segment:finance, not {type(name).__name__:.100}"
        )
    found = GLOBAL_ID if text == "global" else text
    if not is_switch_id(found):
        raise ValueError(
            f"{text!r:.200} is not a switch: use segment:finance, feature:chat or global"
        )
    return found


def _entry_hook(
    before: Mapping[str, SwitchEntry],
) -> Callable[[dict[str, Any]], "dict[str, Any] | SwitchEntry"]:
    """Return a hook for the JSON parser that converts each switch to an entry once it is parsed.

    Without such calls into Python the parser holds the GIL for the whole document, and the parsed
    dictionaries of a large document take several times the memory of their entries.
    """

    def row_or_entry(row: dict[str, Any]) -> dict[str, Any] | SwitchEntry:
        if "id" not in row or "schema" in row:
            return row
        try:
            entry = _parse_entry(row)
        except InvalidSnapshot:
            return row  # Refused later if it is among the switches; ignored elsewhere.
        known = before.get(entry.id)
        return known if known == entry else entry

    return row_or_entry


def _limited_decimal() -> Callable[[str], Decimal]:
    """Return a parser of decimals that refuses to parse more numbers than a snapshot can have."""
    numbers = itertools.count()

    def number(text: str) -> Decimal:
        if next(numbers) > MAX_SWITCHES:
            raise InvalidSnapshot("It has more numbers than a snapshot can have.")
        return Decimal(text)

    return number


def _reject_constant(constant: str) -> None:
    raise ValueError(constant)


def _parse_epoch(value: object) -> str:
    from uuid import UUID  # Slow to import; loaded when a client is created.

    with contextlib.suppress(ValueError):
        if isinstance(value, str):
            return str(UUID(value))
    raise _invalid_field("epoch")


def _parse_number(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return Decimal(value)


def _parse_entries(value: object) -> dict[str, SwitchEntry]:
    if not isinstance(value, list) or len(value) > MAX_SWITCHES:
        raise _invalid_field("switches")
    entries: dict[str, SwitchEntry] = {}
    for row in value:
        if not isinstance(row, dict | SwitchEntry):
            raise _invalid_field("switches")
        entry = row if isinstance(row, SwitchEntry) else _parse_entry(row)
        if entry.id in entries:
            raise InvalidSnapshot("It lists a switch twice.")
        entries[entry.id] = entry
    return entries


def _parse_entry(row: Mapping[str, Any]) -> SwitchEntry:
    switch, state, salt, reason = (row.get(name) for name in ("id", "state", "salt", "reason"))
    if not isinstance(switch, str) or not is_switch_id(switch):
        raise _invalid_field("id")
    ramps = state == "ramping"
    if ramps and not isinstance(salt, str):
        raise _invalid_field("salt")
    allow_points = 0
    if ramps:
        percent = _parse_number(row.get("allow_percent"))
        if percent is None or not 0 <= percent <= 100:
            raise _invalid_field("allow_percent")
        allow_points = int(percent * (BUCKETS // 100))
    return SwitchEntry(
        id=switch,
        # A later console may use other words; any listed switch is not released.
        state="ramping" if ramps else "engaged",
        allow_points=allow_points,
        salt=salt if isinstance(salt, str) else "",
        # Half a surrogate pair is valid JSON, but would raise when it is encoded.
        reason=reason.encode(errors="replace").decode() if isinstance(reason, str) else "",
        expires_at=_parse_timestamp(row, "expires_at"),
        on_expiry=str(row.get("on_expiry")),
        engaged_at=_parse_timestamp(row, "engaged_at"),
        emergency=None if ramps else _parse_order_id(row.get("emergency")),
    )


def _parse_order_id(value: object) -> str | None:
    """Return the id of an order; None if it is absent or malformed, which releases nothing."""
    return value if isinstance(value, str) and _ORDER_ID.fullmatch(value) else None


def _parse_order_ids(value: object) -> tuple[str, ...]:
    """Return the valid ids in a list, at most `MAX_SWITCHES` of them."""
    if not isinstance(value, list):
        return ()
    valid = (each for each in value if _parse_order_id(each) is not None)
    return tuple(itertools.islice(valid, MAX_SWITCHES))


def _parse_hidden_orders(value: object) -> dict[str, str]:
    """Return the valid pairs of an order's id and a switch, at most `MAX_SWITCHES` of them."""
    pairs = value.items() if isinstance(value, dict) else ()
    valid = (
        (order, switch)
        for order, switch in pairs
        if _parse_order_id(order) is not None and isinstance(switch, str) and is_switch_id(switch)
    )
    return dict(itertools.islice(valid, MAX_SWITCHES))


def _parse_timestamp(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    with contextlib.suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is not None and moment.tzinfo is not None:
            return moment.timestamp()
    raise _invalid_field(name)


def _invalid_field(name: str) -> InvalidSnapshot:
    return InvalidSnapshot(f"Its field {name} is invalid.")
