"""A consumer for threads: handles messages, and moves those that fail for good."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from switchgear.dlq import exchanges, letters
from switchgear.dlq.consumer_core import ConsumerCore, Effect, Handle, Sleep, Steps
from switchgear.dlq.exchanges import RAW_OPTIONS, RedisClient, run_exchange
from switchgear.dlq.letters import Fields, Result
from switchgear.dlq.messages import Message
from switchgear.dlq.names import Names

T = TypeVar("T")


@dataclass(kw_only=True, eq=False)
class Consumer(ConsumerCore):
    """Calls `handler` with every message of a stream, until it is stopped.

    If the handler returns, the message is acknowledged. If it raises, it is called again, and after
    the last attempt the message becomes a dead letter. A message may be handled twice, if its
    worker dies after handling and before acknowledging it, so make the handler idempotent; it
    becomes a dead letter once. Errors of Redis are logged and waited for, never raised.
    """

    redis: RedisClient
    handler: Callable[[Message], object]

    def run(self) -> None:
        """Handle messages until `stop()`."""
        with self._extending_claims():
            self._drive(self._work())

    def step(self, wait_seconds: float = 0.0) -> int:
        """Handle a message of another worker, if any, and a batch of new ones; return the number.

        Raise the client's errors.
        """
        with self._extending_claims():
            return self._drive(self._handle_batch(wait_seconds))

    def _drive(self, steps: Steps[T]) -> T:
        go_on: Callable[[], Effect] = partial(steps.send, None)
        while True:
            try:
                effect = go_on()
            except StopIteration as end:
                value: T = end.value
                return value
            try:
                go_on = partial(steps.send, self._perform(effect))
            except BaseException as error:
                go_on = partial(steps.throw, error)

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Handle):
            return self.handler(effect.message)
        if isinstance(effect, Sleep):
            return time.sleep(effect.seconds)
        return self.redis.execute_command(*effect, **RAW_OPTIONS)

    @contextlib.contextmanager
    def _extending_claims(self) -> Iterator[None]:
        """Extend the claims of messages in hand in a thread; release them at the end."""
        ended = threading.Event()
        thread = threading.Thread(target=self._extend_claims, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(timeout=5)
            with contextlib.suppress(Exception):
                self._drive(self._release())

    def _extend_claims(self, ended: threading.Event) -> None:
        while not ended.wait(self._extend_seconds):
            if ids := self._claimed.to_extend(time.monotonic()):
                with contextlib.suppress(Exception):  # Repeated long before they are idle.
                    run_exchange(self.redis, exchanges.extend_claims(self, ids))


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

    The message's content is taken from the stream; `fields` are for one that is no longer there or
    was not read from a group. With `consumer`, do it only while the message is still that
    consumer's. Repeating it is harmless: the outcome is `SETTLED` then. Raise the client's errors,
    and :class:`ValueError` or :class:`TypeError` for invalid arguments: nothing was done.

        except Exception as error:
            dead_letter(client, stream="axiom:events", group="mailer", entry_id=id, error=error,
                        attempts=3)
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
