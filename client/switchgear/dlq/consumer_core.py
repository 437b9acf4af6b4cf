"""Logic of a consumer without I/O, shared by the consumers for threads and for asyncio.

Its generators yield effects and are sent the results, or thrown the errors. An effect is a Redis
command, :class:`Sleep` or :class:`Handle`.
"""

import logging
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from switchgear import cancellation, journal
from switchgear.dlq import exchanges, letters
from switchgear.dlq.exchanges import Command, Exchange
from switchgear.dlq.letters import Outcome
from switchgear.dlq.messages import Message
from switchgear.dlq.settings import ClaimedMessages, Settings, WorkersDied, backoff_seconds

T = TypeVar("T")
TRIES = 3
"""Attempts at a command that Redis rejects, before the message is left for later."""
log = logging.getLogger("switchgear.dlq")


@dataclass(frozen=True, slots=True)
class Sleep:
    """Effect: wait for `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Handle:
    """Effect: call the handler with `message`."""

    message: Message


Effect: TypeAlias = Command | Sleep | Handle
Steps: TypeAlias = Generator[Effect, Any, T]


@dataclass(kw_only=True, eq=False)
class ConsumerCore(Settings):
    """The state and the decisions of one consumer. Not thread-safe, except for :meth:`stop`."""

    redis: Any
    _claimed: ClaimedMessages = field(init=False, repr=False)
    _has_group: bool = field(default=False, init=False, repr=False)
    _reclaim_at: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._claimed = ClaimedMessages(self.held_seconds)
        self._one_slot = exchanges.share_slot(self.redis, self.stream, self.dead_stream)
        self._wait = exchanges.max_block_seconds(self.redis, self.wait_seconds)

    @property
    def _extend_seconds(self) -> float:
        """Interval at which the claims of messages that this worker holds are extended."""
        return min(30.0, self.idle_seconds / 4)

    def _work(self) -> Steps[None]:
        failures = 0
        while not self.is_stopped:
            try:
                yield from self._handle_batch(self._wait)
                failures = 0
            except Exception as error:  # Redis may be away; the consumer goes on.
                failures += 1
                self._log_error(error)
                yield from self._pause(backoff_seconds(failures, 0.5))

    def _handle_batch(self, wait_seconds: float) -> Steps[int]:
        count = 0
        try:
            yield from self._ensure_group()
            if time.monotonic() >= self._reclaim_at:
                reclaimed = yield from exchanges.reclaim_message(self)
                if not reclaimed:
                    self._reclaim_at = time.monotonic() + self.idle_seconds / 10
                count = yield from self._handle_all(reclaimed)
            if self.is_stopped:
                return count
            new = yield from exchanges.read_new(self, 0 if count else wait_seconds)
        except Exception as error:
            if not exchanges.has_error_code(error, "NOGROUP"):
                raise
            self._has_group = False  # Redis was flushed.
            return count
        return count + (yield from self._handle_all(new))

    def _handle_all(self, messages: list[Message]) -> Steps[int]:
        # All messages are claimed first, so that unhandled ones are released after an error.
        self._claimed.add([message.id for message in messages], time.monotonic())
        for message in messages:
            if self.is_stopped:
                break
            try:
                is_done = yield from self._settle(message)
            except Exception as error:  # The message is reclaimed once it is idle.
                self._log_error(error)
                is_done = True
            if is_done:
                self._claimed.drop(message.id)
        return len(messages)

    def _settle(self, message: Message) -> Steps[bool]:
        """Call the handler until it succeeds, or bury the message as a dead letter.

        Return False if the consumer was stopped before either.
        """
        if message.deliveries > self.max_deliveries:
            died = WorkersDied(
                f"delivered {message.deliveries - 1} times without being acknowledged"
            )
            return (yield from self._bury(message, died, message.deliveries - 1))
        attempt = 1
        while True:
            try:
                yield Handle(replace(message, attempt=attempt))
            except Exception as error:
                pause = self.refused_pause(error)
                if pause is not None:
                    self.counts.refused += 1
                    self._claimed.renew(time.monotonic())
                    if not (yield from self._pause(pause)):
                        return False
                    continue
                self.counts.failed_attempts += 1
                if attempt == self.attempts or isinstance(error, self.permanent):
                    return (yield from self._bury(message, error, attempt))
            except SystemExit:  # The message killed its worker, so its delivery stays counted.
                self._claimed.drop(message.id)
                raise
            else:
                yield from self._insist(lambda: exchanges.acknowledge_message(message))
                self.counts.handled += 1
                return True
            if not (yield from self._pause(backoff_seconds(attempt, self.backoff_seconds))):
                return False
            attempt += 1

    def _bury(self, message: Message, error: BaseException, attempts: int) -> Steps[bool]:
        letter = letters.make_letter(
            stream=message.stream,
            dead_stream=self.dead_stream,
            group=message.group,
            consumer=self.consumer,
            entry_id=message.id,
            fields=message.pairs,
            error=error,
            attempts=attempts,
        )
        buried = yield from self._insist(lambda: letter.bury_or_save(one_slot=self._one_slot))
        if buried.outcome is Outcome.DEAD:
            self.counts.dead_lettered += 1
            journal.record(
                "dlq_message_added",
                self.dead_stream,
                letter=buried.new_id,
                message=f"{message.stream} {message.id}",
                error=letters.error_type_name(error),
                attempts=attempts,
            )
        else:
            self.counts.taken += 1
        return True

    def _ensure_group(self) -> Steps[None]:
        if self._has_group:
            return
        try:
            yield from exchanges.create_group(self)
        except Exception as error:
            if not exchanges.has_error_code(error, "BUSYGROUP"):
                raise
        self._has_group = True

    def _insist(self, make: Callable[[], Exchange[T]]) -> Steps[T]:
        """Repeat an exchange with Redis until it succeeds, so that no message is handled twice.

        Raises an error that Redis returns repeatedly, or any error once the consumer is stopped.
        """
        failures = 0
        while True:
            try:
                return (yield from make())
            except Exception as error:
                failures += 1
                if failures >= TRIES and (self.is_stopped or exchanges.is_refusal(error)):
                    raise
                self._log_error(error)
                if not (yield from self._pause(backoff_seconds(failures, 0.5))):
                    yield Sleep(0.1)

    def _pause(self, seconds: float) -> Steps[bool]:
        """Wait `seconds`, or until the consumer is stopped; return False if it is stopped."""
        if cancellation.is_waiting_skipped:
            yield Sleep(0)
            return not self.is_stopped
        until = time.monotonic() + seconds
        while not self.is_stopped:
            left = until - time.monotonic()
            if left <= 0:
                return True
            yield Sleep(min(left, 0.1))
        return False

    def _release(self) -> Steps[None]:
        """Make messages that this consumer holds reclaimable at once by other workers.

        After an error in handling a message, that one is no longer held; it is reclaimed once it is
        idle.
        """
        ids = self._claimed.drop_all()
        if ids or self.is_stopped:
            yield from exchanges.release(self, ids)

    def _log_error(self, error: BaseException) -> None:
        log.warning("%s: %s: %s", self.stream, letters.error_type_name(error), error)
