"""The list of emergency orders: who holds and who applies them, as JSON in pages."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode

from controlplane.core.errors import InvalidInput
from controlplane.core.freshness import INSTANCE_CADENCE
from controlplane.dataplane.serving.call import Call
from controlplane.dataplane.state import State
from switches.emergency.orders import Order, order_document

from .service import EmergencyOrders

PARAMETERS = ("limit", "offset")
DEFAULT_LIMIT, MAX_LIMIT = 50, 200
_NUMBER = re.compile(r"[0-9]{1,9}")


def build_page(state: State, service: EmergencyOrders, call: Call) -> dict[str, Any]:
    """Return a page of :func:`list_orders` as `{"next", "previous", "results"}`."""
    query = parse_qs(call.scope["query_string"].decode("latin-1"))
    limit = min(max(1, _read_number(query, "limit", DEFAULT_LIMIT)), MAX_LIMIT)
    offset = _read_number(query, "offset", 0)
    results = [*list_orders(state, service)]
    has_more = offset + limit < len(results)
    return {
        "next": _build_url(call, limit, offset + limit) if has_more else None,
        "previous": _build_url(call, limit, max(0, offset - limit)) if offset else None,
        "results": results[offset : offset + limit],
    }


def list_orders(state: State, service: EmergencyOrders) -> Iterator[dict[str, Any]]:
    """Yield the documents of the open and the withdrawn orders, the latest first.

    `planes` hold the order on disk. `applied` counts the instances that this process has heard of
    lately, `of`, and those among them that apply the order, `by`.
    """
    orders = state.orders
    applied, instances = count_applied(state)
    engages = [order for order in orders.unclosed.values() if order.withdraws is None]
    for order in sorted(engages, key=lambda order: order.precedence, reverse=True):
        withdrawal = orders.withdrawn.get(order.id)
        yield {
            **order_document(order),
            "state": "open" if withdrawal is None else "withdrawn",
            "planes": sorted(service.holders(order.id)),
            "applied": {"by": applied[str(order.id)], "of": instances},
            "withdrawal": None if withdrawal is None else _describe(withdrawal, service),
        }


def count_applied(state: State) -> tuple[Mapping[str, int], int]:
    """Return how many instances apply each order, by its id, and how many were heard of lately."""
    buffer = state.ledger.presence_buffer
    if state.copy is not None:
        buffer.applied_orders.add_served(state.copy)
    return buffer.count_applied(state.wall() - INSTANCE_CADENCE)


def _describe(withdrawal: Order, service: EmergencyOrders) -> dict[str, Any]:
    return {**order_document(withdrawal), "planes": sorted(service.holders(withdrawal.id))}


def _read_number(query: dict[str, list[str]], name: str, default: int) -> int:
    text = query.get(name, [str(default)])[-1]
    if not _NUMBER.fullmatch(text):
        raise InvalidInput({name: ["Must be a whole number."]})
    return int(text)


def _build_url(call: Call, limit: int, offset: int) -> str:
    scheme = call.headers.get(b"x-forwarded-proto", call.scope.get("scheme", "http").encode())
    host = call.headers.get(b"host", b"")
    query = urlencode({"limit": limit, "offset": offset})
    return f"{scheme.decode('latin-1')}://{host.decode('latin-1')}{call.scope['path']}?{query}"
