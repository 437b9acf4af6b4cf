"""Exchanges with Redis as generators: they yield commands and are sent the replies.

The consumers for threads and for asyncio share them. Nothing here imports a client.
"""

from collections.abc import Awaitable, Generator
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from switchgear.dlq import scripts
from switchgear.dlq.messages import Message, parse_claimed, parse_read
from switchgear.dlq.settings import Settings

T = TypeVar("T")
Command: TypeAlias = tuple[Any, ...]
Exchange: TypeAlias = Generator[Command, Any, T]
RAW_OPTIONS = {"NEVER_DECODE": True}
"""Options for redis-py: replies in bytes, whatever the client decodes, since a payload may be no
text."""


class RedisClient(Protocol):
    """The interface of a client: `redis.Redis`, `redis.RedisCluster`."""

    def execute_command(self, *args: Any, **options: Any) -> Any: ...


class AsyncRedisClient(Protocol):
    """The interface of a client of `redis.asyncio`."""

    def execute_command(self, *args: Any, **options: Any) -> Awaitable[Any]: ...


def run_exchange(client: RedisClient, exchange: Exchange[T]) -> T:
    """Run an exchange and return its value. Raises the client's errors."""
    go_on = partial(exchange.send, None)
    while True:
        try:
            command = go_on()
        except StopIteration as end:
            value: T = end.value
            return value
        try:
            go_on = partial(exchange.send, client.execute_command(*command, **RAW_OPTIONS))
        except Exception as error:  # The talk may know what to make of it.
            go_on = partial(exchange.throw, error)


async def run_exchange_async(client: AsyncRedisClient, exchange: Exchange[T]) -> T:
    """Run an exchange with a client of asyncio."""
    go_on = partial(exchange.send, None)
    while True:
        try:
            command = go_on()
        except StopIteration as end:
            value: T = end.value
            return value
        try:
            go_on = partial(exchange.send, await client.execute_command(*command, **RAW_OPTIONS))
        except Exception as error:  # The talk may know what to make of it.
            go_on = partial(exchange.throw, error)


def create_group(terms: Settings) -> Exchange[None]:
    """Create the stream and the group. Raises BUSYGROUP if the group exists."""
    yield ("XGROUP CREATE", terms.stream, terms.group, terms.start, "MKSTREAM")


def read_new(terms: Settings, wait_seconds: float) -> Exchange[list[Message]]:
    """Read up to a batch of messages that no consumer was given; wait if there is none."""
    block = ("BLOCK", max(1, round(wait_seconds * 1000))) if wait_seconds > 0 else ()
    # With the name in two words redis-py hands over the answer as it came. Its own reading of it
    # makes dictionaries, in which a name that comes twice is there once.
    reply = yield (
        *("XREADGROUP GROUP", terms.group, terms.consumer, "COUNT", terms.batch, *block),
        *("STREAMS", terms.stream, ">"),
    )
    return parse_read(terms.stream, terms.group, reply)


def reclaim(terms: Settings) -> Exchange[list[Message]]:
    """Take over one message of another consumer that is idle, if any.

    One at a time, so that a message that kills its worker does not raise the count of others.
    """
    keys = (1, terms.stream)
    reply = yield ("EVAL", scripts.RECLAIM, *keys, terms.group, terms.consumer, terms.idle_ms, 1)
    messages, gone = parse_claimed(terms.stream, terms.group, reply)
    terms.counts.vanished += len(gone)
    return messages


def acknowledge(message: Message) -> Exchange[None]:
    """Acknowledge a handled message."""
    yield ("XACK", message.stream, message.group, message.id)


def extend_claims(terms: Settings, ids: list[str]) -> Exchange[None]:
    """Reset the idle time of these messages, if they are ours."""
    yield ("EVAL", scripts.EXTEND_CLAIMS, 1, terms.stream, terms.group, terms.consumer, *ids)


def release(terms: Settings, ids: list[str]) -> Exchange[None]:
    """Let others reclaim these messages at once; remove the consumer if nothing is pending."""
    own = (terms.group, terms.consumer, terms.idle_ms)
    yield ("EVAL", scripts.RELEASE, 1, terms.stream, *own, *ids)


def share_slot(client: object, one: str, other: str) -> bool:
    """Return True if a script can access both keys; always, except in a cluster."""
    slot = getattr(client, "keyslot", None)
    return slot is None or slot(one) == slot(other)


def max_block_seconds(client: object, wanted_seconds: float) -> float:
    """Return the time that a read may block before the client's socket timeout."""
    place = getattr(client, "connection_pool", None) or getattr(client, "nodes_manager", None)
    options = getattr(place, "connection_kwargs", None) or {}
    timeout = options.get("socket_timeout")
    return min(wanted_seconds, timeout / 2) if timeout else wanted_seconds


def has_error_code(error: BaseException, word: str) -> bool:
    """Return True if Redis refused with this code, such as `NOGROUP` or `BUSYGROUP`."""
    return word in str(error)


def is_refusal(error: BaseException) -> bool:
    """Return True if Redis refused the command; after other errors it may have run."""
    return any(kind.__name__ == "ResponseError" for kind in type(error).__mro__)
