"""kombu's Redis transport, changed to drop malformed queue items, and to close immediately."""

from queue import Empty
from typing import Any

import structlog
from kombu.transport import redis

# Malformed JSON or UTF-8, deep nesting, and values that kombu's typed JSON (`__type__`) can't read.
UNREADABLE = (
    *(ValueError, TypeError, AttributeError),
    *(LookupError, ArithmeticError, RecursionError),
)

log = structlog.get_logger(__name__)


class LenientChannel(redis.Channel):
    """A kombu channel that drops undecodable queue items, because they would crash the worker."""

    _in_poll: Any

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]
        except UNREADABLE as error:
            log.warning("broker.item_dropped", kind=type(error).__name__, error=str(error))
            raise Empty from error

    def close(self) -> None:
        """Close the channel without waiting for the reply to a pending BRPOP.

        kombu waits for up to `polling_interval`. A message that Redis sends meanwhile is lost,
        which does no harm (see `controlplane.celery`).
        """
        pending = self._in_poll
        if pending and not pending.can_read(timeout=0):
            pending.disconnect()
            self._in_poll = None
        super().close()


class LenientTransport(redis.Transport):
    """A transport that drops queue items that are JSON but not Celery messages."""

    Channel = LenientChannel

    def _deliver(self, message: Any, queue: str | None) -> None:
        if _is_message(message):
            super()._deliver(message, queue)
        else:
            log.warning("broker.item_dropped", error="not a message", queue=queue)


def _is_message(item: Any) -> bool:
    match item:
        case {
            "headers": dict(),
            "body": str(),
            "properties": {"delivery_tag": str(), "delivery_info": dict()} as properties,
        }:
            return properties.get("body_encoding") in (None, "base64")
    return False
