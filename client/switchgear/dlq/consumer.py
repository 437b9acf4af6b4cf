"""A consumer for threads: reads, tries, acknowledges, and gives up into the dead letters."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from switchgear import cancellation, journal
from switchgear.dlq import exchanges, letters
from switchgear.dlq.exchanges import Exchange, RedisClient, run_exchange
from switchgear.dlq.letters import Fields, Outcome, Result
from switchgear.dlq.messages import Message
from switchgear.dlq.names import Names
from switchgear.dlq.settings import ClaimedMessages, Settings, WorkersDied, backoff_seconds

T = TypeVar("T")
TRIES = 3
"""How often Redis is asked again for what it refused, before the message is left for later."""
log = logging.getLogger("switchgear.dlq")


@dataclass(kw_only=True, eq=False)
class Consumer(Settings):
    """Has `handler` see every message of a stream, until it is stopped.

    The handler returns: the message is acknowledged. It raises: it is tried again, and after the
    last attempt the message is a dead letter. A message may be handled twice (its worker died after
    handling and before acknowledging), so make the handler idempotent; it becomes a dead letter
    once. Trouble with Redis is waited for and logged, never raised.
    """

    redis: RedisClient
    handler: Callable[[Message], object]
    _in_hand: ClaimedMessages = field(init=False, repr=False)
    _has_group: bool = field(default=False, init=False, repr=False)
    _reclaim_at: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._in_hand = ClaimedMessages(self.held_seconds)
        self._one_slot = exchanges.share_slot(self.redis, self.stream, self.dead_stream)
        self._wait = exchanges.max_block_seconds(self.redis, self.wait_seconds)

    def run(self) -> None:
        """Work until `stop()`."""
        failures = 0
        with self._keeping():
            while not self.is_stopped:
                try:
                    self._turn(self._wait)
                    failures = 0
                except Exception as error:  # The loop that everything else relies on.
                    failures += 1
                    self._troubled(error)
                    self._pause(backoff_seconds(failures, 0.5))

    def step(self, wait_seconds: float = 0.0) -> int:
        """One turn: a message that was left behind, if any, and a batch of new ones. Gives how many
        there were. Raises what the client raises."""
        with self._keeping():
            return self._turn(wait_seconds)

    def _turn(self, wait_seconds: float) -> int:
        left = 0
        try:
            self._have_group()
            left = self._see_to_all(self._left_behind())
            if self.is_stopped:
                return left
            new = self._ask(exchanges.read_new(self, 0 if left else wait_seconds))
        except Exception as error:
            if not exchanges.has_error_code(error, "NOGROUP"):
                raise
            self._has_group = False  # Somebody emptied Redis.
            return left
        return left + self._see_to_all(new)

    def _see_to_all(self, messages: list[Message]) -> int:
        """In hand at once, so that whatever is not come to is released."""
        self._in_hand.add([one.id for one in messages], time.monotonic())
        for message in messages:
            if self.is_stopped:
                break
            self._see_to(message)
        return len(messages)

    def _see_to(self, message: Message) -> None:
        try:
            is_done = self._settle(message)
        except Exception as error:  # One message's trouble: it comes again when it is idle.
            self._troubled(error)
            is_done = True
        if is_done:
            self._in_hand.drop(message.id)

    def _settle(self, message: Message) -> bool:
        """Come to an end with it; False if we were stopped before."""
        if message.deliveries > self.max_deliveries:
            died = WorkersDied(f"given to {message.deliveries - 1} workers, none of whom finished")
            return self._bury(message, died, message.deliveries - 1)
        attempt = 1
        while True:
            try:
                self.handler(replace(message, attempt=attempt))
            except Exception as error:
                pause = self.refused_pause(error)
                if pause is not None:
                    self.counts.refused += 1
                    self._in_hand.renew(time.monotonic())
                    if not self._pause(pause):
                        return False
                    continue
                self.counts.failed_attempts += 1
                if attempt == self.attempts or isinstance(error, self.permanent):
                    return self._bury(message, error, attempt)
            except SystemExit:  # It ended its worker, so it stays delivered: that is counted.
                self._in_hand.drop(message.id)
                raise
            else:
                self._insist(lambda: exchanges.acknowledge(message))
                self.counts.handled += 1
                return True
            if not self._pause(backoff_seconds(attempt, self.backoff_seconds)):
                return False
            attempt += 1

    def _bury(self, message: Message, error: BaseException, attempts: int) -> bool:
        letter = letters.from_message(
            message,
            dead_stream=self.dead_stream,
            consumer=self.consumer,
            error=error,
            attempts=attempts,
        )
        buried = self._insist(lambda: letter.bury_or_save(one_slot=self._one_slot))
        if buried.outcome is Outcome.DEAD:
            self.counts.dead_lettered += 1
            note_dead(message, self.dead_stream, buried.new_id, error, attempts)
        else:
            self.counts.taken += 1
        return True

    def _left_behind(self) -> list[Message]:
        if time.monotonic() < self._reclaim_at:
            return []
        found = self._ask(exchanges.reclaim(self))
        if not found:
            self._reclaim_at = time.monotonic() + self.idle_seconds / 10
        return found

    def _have_group(self) -> None:
        if self._has_group:
            return
        try:
            self._ask(exchanges.create_group(self))
        except Exception as error:
            if not exchanges.has_error_code(error, "BUSYGROUP"):
                raise
        self._has_group = True

    def _ask(self, exchange: Exchange[T]) -> T:
        return run_exchange(self.redis, exchange)

    def _insist(self, make: Callable[[], Exchange[T]]) -> T:
        """Ask until there is an answer: what was handled shall not be handled again because Redis
        was away for a moment. What it refuses, or nobody answers once we are stopped, is left."""
        failures = 0
        while True:
            try:
                return self._ask(make())
            except Exception as error:
                failures += 1
                if failures >= TRIES and (self.is_stopped or exchanges.is_refusal(error)):
                    raise
                self._troubled(error)
                if not self._pause(backoff_seconds(failures, 0.5)):
                    time.sleep(0.1)

    def _pause(self, seconds: float) -> bool:
        """Wait, but not for long once we are stopped; False if we are."""
        if cancellation.is_waiting_skipped:
            return not self.is_stopped
        until = time.monotonic() + seconds
        while not self.is_stopped:
            left = until - time.monotonic()
            if left <= 0:
                return True
            time.sleep(min(left, 0.1))
        return False

    @contextlib.contextmanager
    def _keeping(self) -> Iterator[None]:
        """While we work: what is in hand is held. Afterwards: what is left of it is released."""
        ended = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(ended,), daemon=True)
        keeper.start()
        try:
            yield
        finally:
            ended.set()
            keeper.join(timeout=5)
            self._release()

    def _keep(self, ended: threading.Event) -> None:
        while not ended.wait(min(30.0, self.idle_seconds / 4)):
            ids = self._in_hand.to_extend(time.monotonic())
            if ids:
                with contextlib.suppress(Exception):  # Asked again soon; the idle time has room.
                    self._ask(exchanges.extend_claims(self, ids))

    def _release(self) -> None:
        ids = self._in_hand.drop_all()
        if not ids and not self.is_stopped:
            return
        with contextlib.suppress(Exception):  # They come again when they are idle.
            self._ask(exchanges.release(self, ids))

    def _troubled(self, error: BaseException) -> None:
        log.warning("%s: %s: %s", self.stream, letters.error_type_name(error), error)


def dead_letter(
    redis: RedisClient,
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
    """Put one message among the dead letters and acknowledge it to its group, in one step.

    It takes the message's content from the stream; `fields` are for one that is not there any more,
    or that came out of no group. Say `consumer` to do it only while the message is still yours.
    Repeating it is harmless: the outcome is `SETTLED` then. Raises what the client raises, and
    :class:`ValueError` or :class:`TypeError` for what can't be: nothing was done.
    """
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
    return run_exchange(redis, letter.bury(one_slot=one_slot))


def note_dead(
    message: Message, dead_stream: str, letter: str, error: BaseException, attempts: int
) -> None:
    """`message` is the dead letter `letter` of `dead_stream` now; what the error says is in it."""
    journal.record(
        "dlq_message_added",
        dead_stream,
        letter=letter,
        message=f"{message.stream} {message.id}",
        error=letters.error_type_name(error),
        attempts=attempts,
    )
