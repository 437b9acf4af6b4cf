"""Emergency orders: immutable documents that engage a switch on data planes. Pure.

An order only adds a block. A withdrawal is an order that takes back another order; it never
releases an ordinary engagement. Data planes accept, sign and exchange orders, and the console turns
each into an episode.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Literal, cast
from uuid import UUID, uuid5

import orjson

from controlplane.core import reasons
from controlplane.core.canonical import timestamp
from controlplane.core.environment_variables import MAX_PLANE_NAME_LENGTH
from controlplane.core.errors import InvalidInput
from switches.expiry import Expiry, plan_expiry
from switches.scopes import HOLD, KEY_PATTERN, SCOPES, is_switch_id
from switches.snapshot import SnapshotEntry

ENGAGE: Final = "engage"
WITHDRAW: Final = "withdraw"
DEFAULT_EXPIRES_IN = "24h"
MAX_NAME_LENGTH = 150
MAX_KEY_LENGTH = 44
MAX_SIGNATURE_LENGTH = 88

OrderAction = Literal["engage", "withdraw"]


@dataclass(frozen=True, slots=True)
class Orderer:
    """The person or API token that gave an order. `id` is that of the person or of the token."""

    type: Literal["user", "token"]
    name: str
    id: int


@dataclass(frozen=True, slots=True)
class RelaySignature:
    """The signature of the relay that accepted an order: its public key, and Ed25519 in base64.

    The order's id is derived from `given_id`, the id requested, and from the key: so no relay can
    give an order the id of another one's. See :mod:`.relay_signatures`.
    """

    key: str
    given_id: UUID
    signature: str


@dataclass(frozen=True, kw_only=True)
class Order:
    """An order to engage `switch`, or to withdraw the order `withdraws`.

    `expires_in` is a duration such as `24h`, or `permanent`; None for a withdrawal. `plane` is the
    name of the data plane that accepted the order at `at`, by that plane's clock. If that was a
    relay, `relay` is its signature.
    """

    id: UUID
    action: OrderAction
    switch: str
    withdraws: UUID | None = None
    reason: str
    expires_in: str | None = None
    by: Orderer
    at: datetime
    plane: str
    relay: RelaySignature | None = None

    @cached_property
    def serialized(self) -> bytes:
        """The order as canonical JSON, of which there is one for each order."""
        return orjson.dumps(order_document(self), option=orjson.OPT_SORT_KEYS)

    @property
    def precedence(self) -> tuple[datetime, str, bytes]:
        """The sort key of orders; of two with the same id, the smaller one is kept."""
        return self.at, str(self.id), self.serialized

    @cached_property
    def expiry(self) -> Expiry:
        """The expiry, counted from `at`; the switch stays engaged after it (`hold`)."""
        scope = self.switch.partition(":")[0]
        return plan_expiry(scope=scope, expires_in=self.expires_in, on_expiry=HOLD, now=self.at)

    @property
    def request(self) -> tuple[object, ...]:
        """The values requested, equal for one request that was sent to two data planes."""
        return self.action, self.subject, self.reason, self.expires_in, self.by

    @property
    def subject(self) -> str:
        """The switch that the order engages, or the id of the order that it withdraws."""
        return self.switch if self.withdraws is None else str(self.withdraws)

    @property
    def given_id(self) -> UUID:
        """The id in the request, which a relay replaces by one of its own."""
        return self.id if self.relay is None else self.relay.given_id

    def may_withdraw(self, order: "Order") -> bool:
        """Return True if this withdrawal can have an effect on `order`, whose id it names.

        A relay can withdraw only what it has accepted itself.
        """
        theirs = None if order.relay is None else order.relay.key
        return self.switch == order.switch and (self.relay is None or self.relay.key == theirs)

    def with_own_id(self) -> "Order":
        """Return the order under an id derived from its own and its subject.

        For an order whose id was given to an order with another subject, too.
        """
        return replace(self, id=derive_id(self.id, self.subject))

    @cached_property
    def entry(self) -> SnapshotEntry:
        """The entry of the switch in snapshots, which engages it."""
        scope, _, key = self.switch.partition(":")
        return SnapshotEntry(
            id=self.switch,
            scope=scope,
            key=key,
            allow_percent=Decimal(0),
            salt="",
            reason=self.reason,
            engaged_at=self.at,
            expires_at=self.expiry.expires_at,
            on_expiry=HOLD,
            emergency=str(self.id),
        )


def order_document(order: Order) -> dict[str, Any]:
    """Return the JSON document of an order; all its keys are present, `relay` if it has one."""
    document = {
        "id": str(order.id),
        "action": order.action,
        "switch": order.switch,
        "order": None if order.withdraws is None else str(order.withdraws),
        "reason": order.reason,
        "expires_in": order.expires_in,
        "on_expiry": HOLD,
        "by": {"type": order.by.type, "name": order.by.name, "id": order.by.id},
        "at": timestamp(order.at),
        "plane": order.plane,
    }
    if order.relay is not None:
        signed = order.relay
        document["relay"] = {
            "key": signed.key,
            "given_id": str(signed.given_id),
            "signature": signed.signature,
        }
    return document


def parse_order(document: Any) -> Order:
    """Return the order in a JSON document from another data plane, a journal or the database.

    Raise :class:`ValueError`, :class:`TypeError` or :class:`LookupError` if it is not an order.
    """
    action, by = document["action"], document["by"]
    if action not in (ENGAGE, WITHDRAW) or document["on_expiry"] != HOLD:
        raise ValueError("an order engages or withdraws, and holds at its expiry")
    order = Order(
        id=_parse_id(document["id"]),
        action=action,
        switch=_parse_switch(document["switch"]),
        withdraws=None if document["order"] is None else _parse_id(document["order"]),
        reason=_parse_text(document["reason"], reasons.MAX_CHARACTERS),
        expires_in=document["expires_in"],
        by=_parse_orderer(by),
        at=datetime.fromisoformat(document["at"]).astimezone(UTC),
        plane=_parse_text(document["plane"], MAX_PLANE_NAME_LENGTH),
        relay=_parse_relay(document.get("relay")),
    )
    if (order.action == WITHDRAW) != (order.withdraws is not None):
        raise ValueError("a withdrawal names the order that it withdraws")
    if order.action == ENGAGE:
        try:
            order.expiry  # noqa: B018 - raises
        except InvalidInput as error:
            raise ValueError(error.detail) from error
        except OverflowError as error:
            raise ValueError("an order ends after the year 9999") from error
    elif order.expires_in is not None:
        raise ValueError("a withdrawal has no expiry")
    return order


def plan_order(
    request: Mapping[str, Any], *, id: UUID, by: Orderer, at: datetime, plane: str
) -> Order:
    """Return the order that a validated request asks for: `engage`, with `switch` and `reason`.

    The rules for key, reason and expiry are those of an ordinary engage. Raise
    :class:`InvalidInput` with every invalid field.
    """
    errors: dict[str, list[str]] = {}
    switch, reason = _read_text(request, "switch"), _read_text(request, "reason")
    expires_in = request.get("expires_in")
    if expires_in is None or expires_in == "":
        expires_in = DEFAULT_EXPIRES_IN
    if not is_switch_id(switch):
        scopes = ", ".join(SCOPES)
        errors["switch"] = [
            f"Must be the id of a switch, such as feature:chat: one of {scopes}, a colon, and a key"
            f" of {KEY_PATTERN}. The switch that stops everything is global:all."
        ]
    if problems := reasons.find_reason_problems(reason):
        errors["reason"] = problems
    scope = switch.partition(":")[0]
    try:
        if not isinstance(expires_in, str):
            raise InvalidInput({"expires_in": ["Must be a text, such as 24h."]})
        plan_expiry(scope=scope, expires_in=expires_in, on_expiry=HOLD, now=at)
    except InvalidInput as error:
        errors.update({field: list(texts) for field, texts in error.errors.items()})
    if errors:
        raise InvalidInput(errors)
    return Order(
        id=id,
        action=ENGAGE,
        switch=switch,
        reason=reason.strip(),
        expires_in=expires_in.strip(),
        by=by,
        at=at,
        plane=plane,
    )


def plan_withdrawal(
    order: Order, reason: str, *, id: UUID, by: Orderer, at: datetime, plane: str
) -> Order:
    """Return the withdrawal of `order`; raise :class:`InvalidInput` without a justification."""
    if problems := reasons.find_text_problems(reason, called="reason"):
        raise InvalidInput({"reason": problems})
    return Order(
        id=id,
        action=WITHDRAW,
        switch=order.switch,
        withdraws=order.id,
        reason=reason.strip(),
        by=by,
        at=at,
        plane=plane,
    )


def derive_id(given: UUID, subject: str) -> UUID:
    """Return the id of an order whose id was given to an order with another subject, too."""
    return uuid5(given, subject)


def hash_ids(ids: Iterable[str]) -> str:
    """Return 8 hexadecimal digits that identify a set of orders by their ids; "" for none."""
    joined = ",".join(sorted(ids))
    return sha256(joined.encode()).hexdigest()[:8] if joined else ""


def _parse_id(value: Any) -> UUID:
    found = UUID(value)
    if str(found) != value:
        raise ValueError("an id is not in canonical form")
    return found


def _parse_switch(value: Any) -> str:
    switch = _parse_text(value, 200)
    if not is_switch_id(switch):
        raise ValueError("an order names no switch")
    return switch


def _parse_text(value: Any, longest: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        raise ValueError("a text of an order is missing or too long")
    return value


def _parse_orderer(value: Any) -> Orderer:
    if value["type"] not in ("user", "token") or type(value["id"]) is not int:
        raise ValueError("an order was given by a person or a token")
    kind = cast("Literal['user', 'token']", value["type"])
    return Orderer(kind, _parse_text(value["name"], MAX_NAME_LENGTH), value["id"])


def _parse_relay(value: Any) -> RelaySignature | None:
    if value is None:
        return None
    return RelaySignature(
        key=_parse_text(value["key"], MAX_KEY_LENGTH),
        given_id=_parse_id(value["given_id"]),
        signature=_parse_text(value["signature"], MAX_SIGNATURE_LENGTH),
    )


def _read_text(request: Mapping[str, Any], field: str) -> str:
    value = request.get(field)
    return value if isinstance(value, str) else ""
