"""The tasks that exchange emergency orders with other data planes and processes."""

from collections.abc import Coroutine, Sequence
from typing import Any

from controlplane.dataplane.config import Config
from switches.emergency.orders import Order

from .folder import watch_folder
from .peers import Peers
from .redis_channel import RedisChannel
from .service import EmergencyOrders


def exchange_orders(
    config: Config, peers: Peers, orders: EmergencyOrders
) -> tuple[Coroutine[Any, Any, None], ...]:
    """Share accepted orders from now on, and return the tasks that exchange orders."""
    if not config.order_keys:
        return ()
    peers.configure(config.plane, config.order_keys, config.data_planes)
    channel = RedisChannel(config.redis_url, config.order_keys[0], peers.receive)

    async def share(accepted: Sequence[Order]) -> None:
        channel.publish(accepted)
        await peers.push(accepted)

    orders.share, orders.count_planes = share, peers.count_planes
    return peers.run(), channel.run(), watch_folder(orders)
