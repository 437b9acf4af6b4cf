"""The served copy: the published snapshot together with the open emergency orders. Pure."""

from dataclasses import replace
from datetime import datetime

from switches.evaluate import lapses_at

from .order_set import OrderSet
from .served_copy import Copy


def merge_orders(published: Copy, orders: OrderSet, now: datetime, before: Copy | None) -> Copy:
    """Return the copy that is served: `published` and the open orders.

    An order only adds a block: where the published switch is engaged, that entry stands; where it
    is ramping, or ends by itself at its expiry, the order wins. `before` is the copy served until
    now, whose rendered elements are reused. A published copy with nothing to add is returned as it
    is, with its signature, even if it lists closed orders that are not listed any more.
    """
    listed = orders.listed_ids(now)
    if not orders.hash and set(listed.closed) <= set(published.orders.closed):
        return published
    entries = dict(published.entries)
    for switch, order in orders.by_switch.items():
        present = entries.get(switch)
        if present is None or present.state == "ramping" or lapses_at(present) is not None:
            entries[switch] = order.entry
    hidden = {
        str(order.id): order.switch
        for order in orders.open.values()
        if entries[order.switch].emergency != str(order.id)
    }
    return Copy.render(
        published.publication,
        entries.values(),
        published if before is None else before,
        drill_snapshot=published.drill_snapshot,
        is_kept=published.is_kept,
        orders=replace(listed, hidden=hidden),
        orders_hash=orders.hash,
        published=published,
    )
