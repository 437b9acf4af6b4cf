"""Talks with Redis without anybody who talks: generators give commands and are sent the answers.

The consumers for threads and for asyncio hold the same talks. Nothing here imports a client.
"""

from collections.abc import Awaitable, Generator
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from switchgear.dlq import scripts
from switchgear.dlq.messages import Message, claimed, read
from switchgear.dlq.settings import Settings

T = TypeVar("T")
Command: TypeAlias = tuple[Any, ...]
Exchange: TypeAlias = Generator[Command, Any, T]
RAW = {"NEVER_DECODE": True}
"""For redis-py: answers in bytes, whatever the client decodes; a payload may be no text."""


class Client(Protocol):
    """What is needed of a client: `redis.Redis`, `redis.RedisCluster`."""

    def execute_command(self, *args: Any, **options: Any) -> Any: ...


class AsyncClient(Protocol):
    """The same of `redis.asyncio`."""

    def execute_command(self, *args: Any, **options: Any) -> Awaitable[Any]: ...


def hold(client: Client, exchange: Exchange[T]) -> T:
    """Hold the talk to its end. Raises what the client raises."""
    go_on = partial(exchange.send, None)
    while True:
        try:
            command = go_on()
        except StopIteration as end:
            value: T = end.value
            return value
        try:
            go_on = partial(exchange.send, client.execute_command(*command, **RAW))
        except Exception as error:  # The talk may know what to make of it.
            go_on = partial(exchange.throw, error)


async def hold_async(client: AsyncClient, exchange: Exchange[T]) -> T:
    """The same with a client of asyncio."""
    go_on = partial(exchange.send, None)
    while True:
        try:
            command = go_on()
        except StopIteration as end:
            value: T = end.value
            return value
        try:
            go_on = partial(exchange.send, await client.execute_command(*command, **RAW))
        except Exception as error:  # The talk may know what to make of it.
            go_on = partial(exchange.throw, error)


def make_group(terms: Settings) -> Exchange[None]:
    """Have the stream and the group there. The caller lets a BUSYGROUP pass: it is there."""
    yield ("XGROUP CREATE", terms.stream, terms.group, terms.start, "MKSTREAM")


def new_messages(terms: Settings, wait_seconds: float) -> Exchange[list[Message]]:
    """Up to a batch that nobody was given yet; waits a while if there is none."""
    block = ("BLOCK", max(1, round(wait_seconds * 1000))) if wait_seconds > 0 else ()
    # With the name in two words redis-py hands over the answer as it came. Its own reading of it
    # makes dictionaries, in which a name that comes twice is there once.
    reply = yield (
        *("XREADGROUP GROUP", terms.group, terms.consumer, "COUNT", terms.batch, *block),
        *("STREAMS", terms.stream, ">"),
    )
    return read(terms.stream, terms.group, reply)


def reclaimed(terms: Settings) -> Exchange[list[Message]]:
    """One that was left behind, or none. One at a time: a message that kills its worker takes no
    other's count along."""
    keys = (1, terms.stream)
    reply = yield ("EVAL", scripts.RECLAIM, *keys, terms.group, terms.consumer, terms.idle_ms, 1)
    messages, gone = claimed(terms.stream, terms.group, reply)
    terms.counts.vanished += len(gone)
    return messages


def acknowledge(message: Message) -> Exchange[None]:
    """It was handled."""
    yield ("XACK", message.stream, message.group, message.id)


def keep(terms: Settings, ids: list[str]) -> Exchange[None]:
    """Nobody reclaims these for a while, if they are ours."""
    yield ("EVAL", scripts.HOLD, 1, terms.stream, terms.group, terms.consumer, *ids)


def release(terms: Settings, ids: list[str]) -> Exchange[None]:
    """Others may take these at once; without any pending left the consumer is taken down."""
    own = (terms.group, terms.consumer, terms.idle_ms)
    yield ("EVAL", scripts.RELEASE, 1, terms.stream, *own, *ids)


def share_slot(client: object, one: str, other: str) -> bool:
    """Whether a script can reach both keys: always, but for a cluster."""
    slot = getattr(client, "keyslot", None)
    return slot is None or slot(one) == slot(other)


def longest_wait(client: object, wanted_seconds: float) -> float:
    """How long a read may wait in Redis, so that the client does not give up on it before."""
    place = getattr(client, "connection_pool", None) or getattr(client, "nodes_manager", None)
    options = getattr(place, "connection_kwargs", None) or {}
    timeout = options.get("socket_timeout")
    return min(wanted_seconds, timeout / 2) if timeout else wanted_seconds


def says(error: BaseException, word: str) -> bool:
    """Whether Redis refused with this word: `NOGROUP`, `BUSYGROUP`."""
    return word in str(error)


def is_refusal(error: BaseException) -> bool:
    """Whether Redis answered that it won't; anything else may have been on the way."""
    return any(kind.__name__ == "ResponseError" for kind in type(error).__mro__)
