"""kombu's Redis transport, without its weak spot: a worker survives junk in a queue's list."""

from queue import Empty
from typing import Any

import structlog
from kombu.transport import redis

log = structlog.get_logger(__name__)


class Channel(redis.Channel):
    """Drops an item that is not JSON; kombu would end the worker for it."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]
        except ValueError as error:  # Of JSON or of UTF-8.
            log.warning("broker.item_dropped", error=str(error))
            raise Empty from error


class Transport(redis.Transport):
    """Drops an item that is JSON but no message."""

    Channel = Channel

    def _deliver(self, message: Any, queue: str | None) -> None:
        if _is_message(message):
            super()._deliver(message, queue)
        else:
            log.warning("broker.item_dropped", error="it is no message", queue=queue)


def _is_message(item: Any) -> bool:
    if not isinstance(item, dict) or not isinstance(item.get("headers"), dict):
        return False
    properties = item.get("properties")
    return (
        isinstance(item.get("body"), str)
        and isinstance(properties, dict)
        and isinstance(properties.get("delivery_tag"), str)
        and isinstance(properties.get("delivery_info"), dict)
        and properties.get("body_encoding") in (None, "base64")
    )
