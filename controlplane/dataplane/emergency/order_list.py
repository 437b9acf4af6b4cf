"""The list of emergency orders, with the planes that hold and the instances that apply them."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode
from uuid import UUID

from controlplane.core.errors import InvalidInput
from controlplane.core.freshness import INSTANCE_CADENCE
from controlplane.dataplane.config import ServingConfig
from controlplane.dataplane.memory.order_set import OrderSet
from controlplane.dataplane.serving.call import Call
from controlplane.dataplane.state import State
from controlplane.dataplane.storage.order_journal import OrderJournal
from controlplane.dataplane.storage.snapshot_file import SnapshotDisk
from switches.emergency.orders import order_document

from .service import EmergencyOrders, SavedOrders

PARAMETERS = ("limit", "offset")
DEFAULT_LIMIT, MAX_LIMIT = 50, 200
ALL = slice(None)
_NUMBER = re.compile(r"[0-9]{1,9}")


def build_page(state: State, service: EmergencyOrders, call: Call) -> dict[str, Any]:
    """Return a page of open and withdrawn orders as `{"next", "previous", "results"}`.

    `planes` hold the order on disk. `applied` has the number of instances that polled this process
    lately, `of`, and the number of those that apply the order, `by`.
    """
    query = parse_qs(call.scope["query_string"].decode("latin-1"))
    limit = min(max(1, _read_number(query, "limit", DEFAULT_LIMIT)), MAX_LIMIT)
    offset = _read_number(query, "offset", 0)
    applied, instances = count_applied(state)
    results = list_documents(state.orders, slice(offset, offset + limit))
    for document in results:
        document["planes"] = sorted(service.holders(UUID(document["id"])))
        document["applied"] = {"by": applied.get(document["id"], 0), "of": instances}
        if (withdrawal := document["withdrawal"]) is not None:
            withdrawal["planes"] = sorted(service.holders(UUID(withdrawal["id"])))
    has_more = offset + limit < len(state.orders.listed)
    return {
        "next": _build_url(call, limit, offset + limit) if has_more else None,
        "previous": _build_url(call, limit, max(0, offset - limit)) if offset else None,
        "results": results,
    }


def count_applied_here(state: State) -> tuple[Counter[str], int]:
    """Return how many instances apply each order, by its id, and how many polled lately.

    Registers the orders served now first: instances acknowledge them by their hash.
    """
    buffer = state.ledger.presence_buffer
    if state.copy is not None:
        buffer.applied_orders.add_served(state.copy)
    return buffer.count_applied(state.wall() - INSTANCE_CADENCE)


def count_applied(state: State) -> tuple[Mapping[str, int], int]:
    """Return the counts of this process, with those of the relays that sent it their status."""
    counts, instances = count_applied_here(state)
    for status in state.ledger.relay_statuses.list_recent():
        counts.update(status.applied_orders)
        instances += status.polling
    return counts, instances


def list_documents(orders: OrderSet, page: slice = ALL) -> list[dict[str, Any]]:
    """Return the documents of a page of the open and the withdrawn orders, the latest first."""
    documents = []
    for order in orders.listed[page]:
        withdrawal = orders.withdrawn.get(order.id)
        document = {
            **order_document(order),
            "state": "open" if withdrawal is None else "withdrawn",
            "withdrawal": None if withdrawal is None else order_document(withdrawal),
        }
        documents.append(document)
    return documents


def read_orders(config: ServingConfig) -> OrderSet:
    """Return the orders on disk, with those that the database has closed. Blocking.

    Raise OSError if the folder can't be read.
    """
    if config.folder is None:
        return OrderSet()
    disk = SnapshotDisk(config.folder, config.signing_key, older_keys=config.older_keys)
    return read_journal(config, config.folder, disk.read())


def read_journal(config: ServingConfig, folder: Path, saved: SavedOrders | None) -> OrderSet:
    """Return the orders on disk, with those that are closed in `saved`. Blocking.

    Raise OSError if the folder can't be read.
    """
    orders = OrderSet() if saved is None else OrderSet(closed=saved.closed, settled=saved.settled)
    return orders.add(OrderJournal(folder, config.order_keys).load())


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
