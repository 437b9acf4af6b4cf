"""Emergency orders in messages between relays and their upstreams: plain JSON documents. Pure."""

import orjson

from controlplane.core.private_files import InvalidFile
from switches.emergency.orders import Order, parse_order
from switches.emergency.relay_signatures import is_signed_by_relay


def read_order(text: str | bytes) -> Order:
    """Return an order from an upstream; raise :class:`InvalidFile`.

    The signature of a relay is verified.
    """
    try:
        order = parse_order(orjson.loads(text))
    except (ValueError, TypeError, LookupError) as error:
        raise InvalidFile(f"it is not an order: {error}") from error
    if order.relay is not None and not is_signed_by_relay(order):
        raise InvalidFile("the signature of its relay is wrong")
    return order


def read_relay_order(text: str) -> Order:
    """Return an order from a relay; raise :class:`InvalidFile` unless a relay has signed it."""
    order = read_order(text)
    if order.relay is None:
        raise InvalidFile("no relay has signed it")
    return order


def write_order(order: Order) -> str:
    return order.serialized.decode()
