"""Messages between data planes: signed requests and replies that carry emergency orders. Pure.

Someone who has recorded a message can send it again. That is harmless: each order has a signature
of its own, merging is a union, and no message can close an order.
"""

import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson

from controlplane.core.environment_variables import MAX_PLANE_NAME_LENGTH
from controlplane.core.protocol import EXCHANGE
from controlplane.dataplane.memory.order_set import OrderSet
from switches.emergency.orders import Order

HEADER = "Switchgear-Peer"
REQUEST: Final = b"POST " + EXCHANGE.encode()
REPLY: Final = b"reply " + EXCHANGE.encode()
MAX_SKEW_SECONDS = 60.0
MAX_BATCH_BYTES = 512 * 1024
MAX_BATCH_ORDERS = 500
MAX_REPLY_BYTES = 4 * 1024 * 1024
_STAMP = re.compile(
    rb"t=([0-9]{1,12}), n=([0-9a-f]{32}), b=([0-9a-f]{64}), v1=([0-9a-f]{64})", re.ASCII
)
_PROCESS = re.compile(r"[0-9a-f]{32}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LISTED = re.compile(r"[0-9a-f]{40}")
_ID_DIGITS = 32


class InvalidMessage(Exception):
    """A message that can't be accepted; the text is the reason, for the log."""


class PeerKeys(NamedTuple):
    """Keys of one secret: that of orders, and that of messages between data planes."""

    order: bytes
    message: bytes


def peer_keys(order_keys: Iterable[bytes]) -> tuple[PeerKeys, ...]:
    """Return the keys of each secret, given the keys that sign orders."""
    label = b"switchgear/emergency/peer/1"
    return tuple(PeerKeys(key, hmac.digest(key, label, "sha256")) for key in order_keys)


@dataclass(frozen=True)
class Stamp:
    """The header `Switchgear-Peer`: time, nonce, SHA-256 of the body, and an HMAC of all three.

    The HMAC covers the hash of the body, so that a stranger is refused before the body is read. A
    reply repeats the nonce of its request.
    """

    at: int
    nonce: bytes
    body_hash: bytes
    signature: bytes

    @classmethod
    def make(cls, purpose: bytes, body: bytes, key: bytes, *, at: float, nonce: bytes) -> "Stamp":
        body_hash = sha256(body).hexdigest().encode()
        seconds = max(0, int(at))
        return cls(seconds, nonce, body_hash, _sign(purpose, seconds, nonce, body_hash, key))

    @classmethod
    def parse(cls, header: bytes) -> "Stamp":
        """Return the stamp in a header; raise :class:`InvalidMessage` if it has another form."""
        if (match := _STAMP.fullmatch(header)) is None:
            raise InvalidMessage("it has no valid signature header")
        return cls(int(match[1]), match[2], match[3], match[4])

    @property
    def header(self) -> bytes:
        parts = (self.at, self.nonce, self.body_hash, self.signature)
        return b"t=%d, n=%b, b=%b, v1=%b" % parts

    def find_key(self, purpose: bytes, keys: Sequence[PeerKeys]) -> PeerKeys | None:
        """Return the keys with which a message for `purpose` was signed; None if none fits."""
        found = None
        for key in keys:
            expected = _sign(purpose, self.at, self.nonce, self.body_hash, key.message)
            if hmac.compare_digest(expected, self.signature):
                found = key
        return found

    def repeats(self, nonce: bytes) -> bool:
        return hmac.compare_digest(self.nonce, nonce)

    def covers(self, body: bytes) -> bool:
        return hmac.compare_digest(sha256(body).hexdigest().encode(), self.body_hash)


def make_nonce() -> bytes:
    return secrets.token_hex(16).encode()


@dataclass(frozen=True, kw_only=True)
class Sender:
    """The data plane that sent a message: its name, and the random id of its process.

    `digest` is that of its orders (:attr:`OrderSet.digest`); `all_stored` says that they are on its
    disk.
    """

    plane: str
    process: str
    digest: str
    all_stored: bool = True


@dataclass(frozen=True, kw_only=True)
class ExchangeRequest:
    """Signed `orders` for the receiver, and a listing of all orders that the sender holds.

    Without a listing (None), the receiver sends no orders back.
    """

    sender: Sender
    orders: tuple[str, ...] = ()
    listing: tuple[str, ...] | None = None

    def serialize(self) -> bytes:
        content = {"orders": self.orders, "listing": self.listing}
        return orjson.dumps({**_sender_document(self.sender), **content})

    @classmethod
    def parse(cls, body: bytes) -> "ExchangeRequest":
        """Return the request in a body; raise :class:`InvalidMessage` if it is malformed."""
        document = _parse_document(body)
        listing = document.get("listing")
        return cls(
            sender=_parse_sender(document),
            orders=_parse_texts(document.get("orders")),
            listing=None if listing is None else _parse_texts(listing, _LISTED),
        )


@dataclass(frozen=True, kw_only=True)
class ExchangeReply:
    """The ids of the sent orders that the receiver has stored durably, and what it lacks or offers.

    `wanted` are listed orders that it lacks, and `orders` those that the listing lacks; `more` says
    that there are further ones.
    """

    sender: Sender
    stored: tuple[UUID, ...] = ()
    wanted: tuple[UUID, ...] = ()
    orders: tuple[str, ...] = ()
    more: bool = False

    def serialize(self) -> bytes:
        content = {
            "stored": self.stored,
            "wanted": self.wanted,
            "orders": self.orders,
            "more": self.more,
        }
        return orjson.dumps({**_sender_document(self.sender), **content})

    @classmethod
    def parse(cls, body: bytes) -> "ExchangeReply":
        """Return the reply in a body; raise :class:`InvalidMessage` if it is malformed."""
        document = _parse_document(body)
        return cls(
            sender=_parse_sender(document),
            stored=_parse_ids(document.get("stored")),
            wanted=_parse_ids(document.get("wanted")),
            orders=_parse_texts(document.get("orders")),
            more=document.get("more") is True,
        )


def list_orders(orders: Iterable[Order]) -> tuple[str, ...]:
    """Return a listing: for each order its id and 8 digits of a hash of its content."""
    return tuple(_list_order(order) for order in orders)


class ListingDifference(NamedTuple):
    """Orders that the sender of a listing lacks, and ids of listed orders that we lack."""

    offered: list[Order]
    wanted: list[UUID]


def compare_listing(listing: Iterable[str], held: OrderSet) -> ListingDifference:
    """Compare a listing with the orders held here.

    Closed orders are neither offered nor wanted. Of an order whose content differs, both planes
    send theirs.
    """
    listed = set(listing)
    known = {_list_order(order) for order in held.orders.values()}
    offered = [order for order in held.unclosed.values() if _list_order(order) not in listed]
    return ListingDifference(offered, [parse_listed(text) for text in sorted(listed - known)])


def parse_listed(text: str) -> UUID:
    """Return the id of an order in a listing."""
    return UUID(hex=text[:_ID_DIGITS])


def write_batch(
    orders: Iterable[Order], write: Callable[[Order], str]
) -> tuple[tuple[str, ...], int]:
    """Return as many orders as fit into a message, as texts by `write`, and their number."""
    batch: list[str] = []
    size = 0
    for order in orders:
        text = write(order)
        size += len(orjson.dumps(text))
        if batch and (size > MAX_BATCH_BYTES or len(batch) == MAX_BATCH_ORDERS):
            break
        batch.append(text)
    return tuple(batch), len(batch)


def _list_order(order: Order) -> str:
    return order.id.hex + sha256(order.serialized).hexdigest()[:8]


def _sign(purpose: bytes, at: int, nonce: bytes, body_hash: bytes, key: bytes) -> bytes:
    text = b"%d.%b.%b.%b" % (at, nonce, purpose, body_hash)
    return hmac.digest(key, text, "sha256").hex().encode()


def _sender_document(sender: Sender) -> dict[str, Any]:
    return {
        "plane": sender.plane,
        "process": sender.process,
        "digest": sender.digest,
        "all_stored": sender.all_stored,
    }


def _parse_document(body: bytes) -> Mapping[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidMessage(f"it is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidMessage("it is not a JSON object")
    return document


def _parse_sender(document: Mapping[str, Any]) -> Sender:
    plane, process, digest = (document.get(key) for key in ("plane", "process", "digest"))
    if not isinstance(plane, str) or not 1 <= len(plane) <= MAX_PLANE_NAME_LENGTH:
        raise InvalidMessage("it has no name of a data plane")
    if not isinstance(process, str) or not _PROCESS.fullmatch(process):
        raise InvalidMessage("it has no process id")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise InvalidMessage("it has no digest")
    all_stored = document.get("all_stored") is True
    return Sender(plane=plane, process=process, digest=digest, all_stored=all_stored)


def _parse_texts(values: Any, pattern: re.Pattern[str] | None = None) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidMessage("a list of texts is missing")
    if pattern is not None and not all(pattern.fullmatch(value) for value in values):
        raise InvalidMessage("a text has another form")
    return tuple(values)


def _parse_ids(values: Any) -> tuple[UUID, ...]:
    try:
        return tuple(UUID(value) for value in _parse_texts(values))
    except ValueError as error:
        raise InvalidMessage("an id is not a UUID") from error
