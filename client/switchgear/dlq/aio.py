"""The consumer for asyncio: what `consumer` does with threads, with tasks."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from switchgear import cancellation
from switchgear.async_backend import require_asyncio
from switchgear.dlq import exchanges, letters
from switchgear.dlq.consumer import TRIES, log, note_dead
from switchgear.dlq.exchanges import AsyncRedisClient, Exchange, run_exchange_async
from switchgear.dlq.letters import Fields, Outcome, Result
from switchgear.dlq.messages import Message
from switchgear.dlq.names import Names
from switchgear.dlq.settings import ClaimedMessages, Settings, WorkersDied, backoff_seconds

T = TypeVar("T")


@dataclass(kw_only=True, eq=False)
class AsyncConsumer(Settings):
    """:class:`Consumer` for asyncio: the handler is awaited, one message after the other. Several
    may share a client; give each a task of its own. A task that is cancelled releases what it had.
    """

    redis: AsyncRedisClient
    handler: Callable[[Message], Awaitable[object]]
    _in_hand: ClaimedMessages = field(init=False, repr=False)
    _has_group: bool = field(default=False, init=False, repr=False)
    _reclaim_at: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._in_hand = ClaimedMessages(self.held_seconds)
        self._one_slot = exchanges.share_slot(self.redis, self.stream, self.dead_stream)
        self._wait = exchanges.max_block_seconds(self.redis, self.wait_seconds)

    async def run(self) -> None:
        """Work until `stop()`."""
        failures = 0
        async with self._keeping():
            while not self.is_stopped:
                try:
                    await self._turn(self._wait)
                    failures = 0
                except Exception as error:  # The loop that everything else relies on.
                    failures += 1
                    self._troubled(error)
                    await self._pause(backoff_seconds(failures, 0.5))

    async def step(self, wait_seconds: float = 0.0) -> int:
        """One turn: a message that was left behind, if any, and a batch of new ones. Gives how many
        there were. Raises what the client raises."""
        async with self._keeping():
            return await self._turn(wait_seconds)

    async def _turn(self, wait_seconds: float) -> int:
        left = 0
        try:
            await self._have_group()
            left = await self._see_to_all(await self._left_behind())
            if self.is_stopped:
                return left
            new = await self._ask(exchanges.read_new(self, 0 if left else wait_seconds))
        except Exception as error:
            if not exchanges.has_error_code(error, "NOGROUP"):
                raise
            self._has_group = False  # Somebody emptied Redis.
            return left
        return left + await self._see_to_all(new)

    async def _see_to_all(self, messages: list[Message]) -> int:
        """In hand at once, so that whatever is not come to is released."""
        self._in_hand.add([one.id for one in messages], time.monotonic())
        for message in messages:
            if self.is_stopped:
                break
            await self._see_to(message)
        return len(messages)

    async def _see_to(self, message: Message) -> None:
        try:
            is_done = await self._settle(message)
        except Exception as error:  # One message's trouble: it comes again when it is idle.
            self._troubled(error)
            is_done = True
        if is_done:
            self._in_hand.drop(message.id)

    async def _settle(self, message: Message) -> bool:
        """Come to an end with it; False if we were stopped before."""
        if message.deliveries > self.max_deliveries:
            died = WorkersDied(f"given to {message.deliveries - 1} workers, none of whom finished")
            return await self._bury(message, died, message.deliveries - 1)
        attempt = 1
        while True:
            try:
                await self.handler(replace(message, attempt=attempt))
            except Exception as error:
                pause = self.refused_pause(error)
                if pause is not None:
                    self.counts.refused += 1
                    self._in_hand.renew(time.monotonic())
                    if not await self._pause(pause):
                        return False
                    continue
                self.counts.failed_attempts += 1
                if attempt == self.attempts or isinstance(error, self.permanent):
                    return await self._bury(message, error, attempt)
            except SystemExit:  # It ended its worker, so it stays delivered: that is counted.
                self._in_hand.drop(message.id)
                raise
            else:
                await self._insist(lambda: exchanges.acknowledge(message))
                self.counts.handled += 1
                return True
            if not await self._pause(backoff_seconds(attempt, self.backoff_seconds)):
                return False
            attempt += 1

    async def _bury(self, message: Message, error: BaseException, attempts: int) -> bool:
        letter = letters.from_message(
            message,
            dead_stream=self.dead_stream,
            consumer=self.consumer,
            error=error,
            attempts=attempts,
        )
        buried = await self._insist(lambda: letter.bury_or_save(one_slot=self._one_slot))
        if buried.outcome is Outcome.DEAD:
            self.counts.dead_lettered += 1
            note_dead(message, self.dead_stream, buried.new_id, error, attempts)
        else:
            self.counts.taken += 1
        return True

    async def _left_behind(self) -> list[Message]:
        if time.monotonic() < self._reclaim_at:
            return []
        found = await self._ask(exchanges.reclaim(self))
        if not found:
            self._reclaim_at = time.monotonic() + self.idle_seconds / 10
        return found

    async def _have_group(self) -> None:
        if self._has_group:
            return
        try:
            await self._ask(exchanges.create_group(self))
        except Exception as error:
            if not exchanges.has_error_code(error, "BUSYGROUP"):
                raise
        self._has_group = True

    async def _ask(self, exchange: Exchange[T]) -> T:
        return await run_exchange_async(self.redis, exchange)

    async def _insist(self, make: Callable[[], Exchange[T]]) -> T:
        """Ask until there is an answer: what was handled shall not be handled again because Redis
        was away for a moment. What it refuses, or nobody answers once we are stopped, is left."""
        failures = 0
        while True:
            try:
                return await self._ask(make())
            except Exception as error:
                failures += 1
                if failures >= TRIES and (self.is_stopped or exchanges.is_refusal(error)):
                    raise
                self._troubled(error)
                if not await self._pause(backoff_seconds(failures, 0.5)):
                    await asyncio.sleep(0.1)

    async def _pause(self, seconds: float) -> bool:
        """Wait, but not for long once we are stopped; False if we are."""
        if cancellation.is_waiting_skipped:
            await asyncio.sleep(0)
            return not self.is_stopped
        until = time.monotonic() + seconds
        while not self.is_stopped:
            left = until - time.monotonic()
            if left <= 0:
                return True
            await asyncio.sleep(min(left, 0.1))
        return False

    @contextlib.asynccontextmanager
    async def _keeping(self) -> AsyncIterator[None]:
        """While we work: what is in hand is held. Afterwards: what is left of it is released."""
        require_asyncio("an AsyncConsumer", "run a Consumer in a thread")
        keeper = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeper.cancel()
            await asyncio.shield(self._release())

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(min(30.0, self.idle_seconds / 4))
            ids = self._in_hand.to_extend(time.monotonic())
            if ids:
                with contextlib.suppress(Exception):  # Asked again soon; the idle time has room.
                    await self._ask(exchanges.extend_claims(self, ids))

    async def _release(self) -> None:
        ids = self._in_hand.drop_all()
        if not ids and not self.is_stopped:
            return
        with contextlib.suppress(Exception):  # They come again when they are idle.
            await self._ask(exchanges.release(self, ids))

    def _troubled(self, error: BaseException) -> None:
        log.warning("%s: %s: %s", self.stream, letters.error_type_name(error), error)


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
