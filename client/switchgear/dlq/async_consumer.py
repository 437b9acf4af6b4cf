"""Consumer for asyncio."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Unpack

from switchgear.async_backend import require_asyncio
from switchgear.dlq import exchanges, letters
from switchgear.dlq.consumer_core import ConsumerCore, Effect, Handle, Sleep
from switchgear.dlq.exchanges import RAW_OPTIONS, AsyncRedisClient, run_exchange_async
from switchgear.dlq.letters import DeadLetterArguments, Result
from switchgear.dlq.messages import Message
from switchgear.generator_steps import run_effects_async


@dataclass(kw_only=True, eq=False)
class AsyncConsumer(ConsumerCore):
    """A :class:`Consumer` for asyncio, which awaits the handler for one message after the other.

    Several consumers may share a client; run each in its own task. When its task is cancelled, a
    consumer releases its messages.
    """

    redis: AsyncRedisClient
    handler: Callable[[Message], Awaitable[object]]

    async def run(self) -> None:
        """Handle messages until :meth:`stop` is called."""
        async with self._extending_claims():
            await run_effects_async(self._work(), self._perform)

    async def step(self, wait_seconds: float = 0.0) -> int:
        """Like :meth:`Consumer.step`."""
        async with self._extending_claims():
            return await run_effects_async(self._handle_batch(wait_seconds), self._perform)

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Handle):
            return await self.handler(effect.message)
        if isinstance(effect, Sleep):
            return await asyncio.sleep(effect.seconds)
        return await self.redis.execute_command(*effect, **RAW_OPTIONS)

    @contextlib.asynccontextmanager
    async def _extending_claims(self) -> AsyncIterator[None]:
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
                with contextlib.suppress(Exception):  # The next extension is early enough.
                    await run_exchange_async(self.redis, exchanges.extend_claims(self, ids))

    async def _release_claims(self) -> None:
        with contextlib.suppress(Exception):
            await run_effects_async(self._release(), self._perform)


async def dead_letter_async(
    redis: AsyncRedisClient, **arguments: Unpack[DeadLetterArguments]
) -> Result:
    """Like :func:`dead_letter`, for asyncio."""
    letter = letters.make_letter(**arguments)
    one_slot = exchanges.share_slot(redis, letter.stream, letter.dead_stream)
    return await run_exchange_async(redis, letter.bury(one_slot=one_slot))
