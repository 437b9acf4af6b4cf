"""Signatures of the emergency orders that relays accept. Pure.

A relay has no key of the installation, so it signs each order with an Ed25519 key of its own. The
signature doesn't prove that a person gave the order. It binds a withdrawal to the relay that
accepted the order, so that a relay that lies can block switches, but release none.
"""

import base64
import binascii
from dataclasses import replace
from uuid import UUID

from controlplane.core.signatures import InvalidKey, PublicKey, SigningKey

from .orders import Order, RelaySignature, derive_id

_LABEL = b"switchgear/relay-order/1\n"


def sign_order(order: Order, key: SigningKey) -> Order:
    """Return an order that a relay accepts, signed, and under an id of this relay."""
    public = str(key.public)
    own_id = derive_relay_id(order.id, order.subject, public)
    unsigned = replace(order, id=own_id, relay=RelaySignature(public, order.id, ""))
    signature = base64.b64encode(key.sign(_signed_content(unsigned))).decode()
    return replace(unsigned, relay=RelaySignature(public, order.id, signature))


def is_signed_by_relay(order: Order) -> bool:
    """Return True if the relay whose key the order names has signed it."""
    signed = order.relay
    if signed is None or order.id != derive_relay_id(signed.given_id, order.subject, signed.key):
        return False
    try:
        key = PublicKey.parse(signed.key)
        signature = base64.b64decode(signed.signature, validate=True)
    except (InvalidKey, binascii.Error):
        return False
    unsigned = replace(order, relay=replace(signed, signature=""))
    return str(key) == signed.key and key.accepts(signature, _signed_content(unsigned))


def derive_relay_id(given: UUID, subject: str, key: str) -> UUID:
    """Return the id of the order that a relay accepts for a request with the id `given`."""
    return derive_id(given, f"{subject} {key}")


def _signed_content(unsigned: Order) -> bytes:
    return _LABEL + unsigned.serialized
