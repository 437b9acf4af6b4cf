"""Exchanges with Redis as generators, which yield commands and are sent the replies.

The consumers for threads and for asyncio share them. Nothing here imports a Redis client.
"""

from collections.abc import Awaitable, Generator
from typing import Any, Protocol, TypeAlias, TypeVar

from switchgear.dlq import scripts
from switchgear.dlq.messages import Message, parse_claimed, parse_read
from switchgear.dlq.settings import Settings
from switchgear.generator_steps import run_effects, run_effects_async

T = TypeVar("T")
Command: TypeAlias = tuple[Any, ...]
Exchange: TypeAlias = Generator[Command, Any, T]
RAW_OPTIONS = {"NEVER_DECODE": True}
"""Options of redis-py that return replies in bytes, since a payload may be binary."""


class RedisClient(Protocol):
    """Interface of a synchronous Redis client: `redis.Redis` or `redis.RedisCluster`."""

    def execute_command(self, *args: Any, **options: Any) -> Any: ...


class AsyncRedisClient(Protocol):
    """Interface of an asynchronous Redis client, of `redis.asyncio`."""

    def execute_command(self, *args: Any, **options: Any) -> Awaitable[Any]: ...


def run_exchange(client: RedisClient, exchange: Exchange[T]) -> T:
    """Run an exchange with Redis by a synchronous client and return the exchange's value.

    Raises the client's errors.
    """
    return run_effects(exchange, lambda command: client.execute_command(*command, **RAW_OPTIONS))


async def run_exchange_async(client: AsyncRedisClient, exchange: Exchange[T]) -> T:
    """Run an exchange with Redis by an asynchronous client and return the exchange's value."""
    return await run_effects_async(
        exchange, lambda command: client.execute_command(*command, **RAW_OPTIONS)
    )


def create_group(settings: Settings) -> Exchange[None]:
    """Create the stream and the group. Raises BUSYGROUP if the group exists."""
    yield ("XGROUP CREATE", settings.stream, settings.group, settings.start, "MKSTREAM")


def read_new(settings: Settings, wait_seconds: float) -> Exchange[list[Message]]:
    """Read up to a batch of messages that no consumer has received; wait if there is none."""
    block = ("BLOCK", max(1, round(wait_seconds * 1000))) if wait_seconds > 0 else ()
    # With a command name of two words, redis-py returns the raw reply. It would otherwise build
    # dictionaries, which lose repeated field names.
    reply = yield (
        *("XREADGROUP GROUP", settings.group, settings.consumer, "COUNT", settings.batch, *block),
        *("STREAMS", settings.stream, ">"),
    )
    return parse_read(settings.stream, settings.group, reply)


def reclaim_message(settings: Settings) -> Exchange[list[Message]]:
    """Claim one message that another consumer has left idle, if any.

    Only one message is claimed, so that a message that crashes its worker does not raise the
    delivery counts of other messages.
    """
    own = (settings.group, settings.consumer, settings.idle_ms)
    reply = yield ("EVAL", scripts.RECLAIM, 1, settings.stream, *own, 1)
    messages, gone = parse_claimed(settings.stream, settings.group, reply)
    settings.counts.vanished += len(gone)
    return messages


def acknowledge_message(message: Message) -> Exchange[None]:
    yield ("XACK", message.stream, message.group, message.id)


def extend_claims(settings: Settings, ids: list[str]) -> Exchange[None]:
    """Reset the idle time of the messages in `ids` that this consumer still holds."""
    own = (settings.group, settings.consumer)
    yield ("EVAL", scripts.EXTEND_CLAIMS, 1, settings.stream, *own, *ids)


def release(settings: Settings, ids: list[str]) -> Exchange[None]:
    """Make the messages `ids` reclaimable by others at once.

    Delete this consumer from its group if it has no pending messages.
    """
    own = (settings.group, settings.consumer, settings.idle_ms)
    yield ("EVAL", scripts.RELEASE, 1, settings.stream, *own, *ids)


def share_slot(client: object, one: str, other: str) -> bool:
    """Return True if one script can access both keys; in a cluster, if they have the same slot."""
    slot = getattr(client, "keyslot", None)
    return slot is None or slot(one) == slot(other)


def max_block_seconds(client: object, wanted_seconds: float) -> float:
    """Return the time that a read may block, below the client's socket timeout."""
    pool = getattr(client, "connection_pool", None) or getattr(client, "nodes_manager", None)
    options = getattr(pool, "connection_kwargs", None) or {}
    timeout = options.get("socket_timeout")
    return min(wanted_seconds, timeout / 2) if timeout else wanted_seconds


def has_error_code(error: BaseException, word: str) -> bool:
    """Return True if `error` is Redis's rejection with the code `word`, such as `NOGROUP`."""
    return word in str(error)


def is_refusal(error: BaseException) -> bool:
    """Return True if Redis rejected the command; after any other error, Redis may have run it."""
    return any(kind.__name__ == "ResponseError" for kind in type(error).__mro__)
