"""A consumer for asyncio."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from switchgear.async_backend import require_asyncio
from switchgear.dlq import exchanges, letters
from switchgear.dlq.consumer_core import ConsumerCore, Effect, Handle, Sleep, Steps
from switchgear.dlq.exchanges import RAW_OPTIONS, AsyncRedisClient, run_exchange_async
from switchgear.dlq.letters import Fields, Result
from switchgear.dlq.messages import Message
from switchgear.dlq.names import Names

T = TypeVar("T")


@dataclass(kw_only=True, eq=False)
class AsyncConsumer(ConsumerCore):
    """A :class:`Consumer` for asyncio, which awaits the handler, one message after the other.

    Several may share a client; run each in a task of its own. A cancelled task releases its
    messages.
    """

    redis: AsyncRedisClient
    handler: Callable[[Message], Awaitable[object]]

    async def run(self) -> None:
        """Handle messages until `stop()`."""
        async with self._extending_claims():
            await self._drive(self._work())

    async def step(self, wait_seconds: float = 0.0) -> int:
        """Handle a message of another worker, if any, and a batch of new ones; return the number.

        Raise the client's errors.
        """
        async with self._extending_claims():
            return await self._drive(self._handle_batch(wait_seconds))

    async def _drive(self, steps: Steps[T]) -> T:
        go_on: Callable[[], Effect] = partial(steps.send, None)
        while True:
            try:
                effect = go_on()
            except StopIteration as end:
                value: T = end.value
                return value
            try:
                go_on = partial(steps.send, await self._perform(effect))
            except BaseException as error:
                go_on = partial(steps.throw, error)

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Handle):
            return await self.handler(effect.message)
        if isinstance(effect, Sleep):
            return await asyncio.sleep(effect.seconds)
        return await self.redis.execute_command(*effect, **RAW_OPTIONS)

    @contextlib.asynccontextmanager
    async def _extending_claims(self) -> AsyncIterator[None]:
        """Extend the claims of messages in hand in a task; release them at the end."""
        require_asyncio("an AsyncConsumer", "run a Consumer in a thread")
        task = asyncio.create_task(self._extend_claims())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.shield(self._release_claims())

    async def _extend_claims(self) -> None:
        while True:
            await asyncio.sleep(self._extend_seconds)
            if ids := self._claimed.to_extend(time.monotonic()):
                with contextlib.suppress(Exception):  # Repeated long before they are idle.
                    await run_exchange_async(self.redis, exchanges.extend_claims(self, ids))

    async def _release_claims(self) -> None:
        with contextlib.suppress(Exception):
            await self._drive(self._release())


async def dead_letter_async(
    redis: AsyncRedisClient,
    *,
    stream: str,
    error: BaseException | str,
    attempts: int,
    group: str = "",
    consumer: str = "",
    entry_id: str = "",
    fields: Fields | None = None,
    names: Names | None = None,
    dead_stream: str = "",
    error_type: str = "",
    failed_at: datetime | None = None,
) -> Result:
    """:func:`dead_letter` for asyncio."""
    letter = letters.from_arguments(
        stream=stream,
        dead_stream=dead_stream,
        names=names,
        group=group,
        consumer=consumer,
        entry_id=entry_id,
        fields=fields,
        error=error,
        error_type=error_type,
        attempts=attempts,
        failed_at=failed_at,
    )
    one_slot = exchanges.share_slot(redis, letter.stream, letter.dead_stream)
    return await run_exchange_async(redis, letter.bury(one_slot=one_slot))
