"""Consumer for threads, which moves messages that fail for good to the dead letters."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Unpack

from switchgear.dlq import exchanges, letters
from switchgear.dlq.consumer_core import ConsumerCore, Effect, Handle, Sleep
from switchgear.dlq.exchanges import RAW_OPTIONS, RedisClient, run_exchange
from switchgear.dlq.letters import DeadLetterArguments, Result
from switchgear.dlq.messages import Message
from switchgear.generator_steps import run_effects


@dataclass(kw_only=True, eq=False)
class Consumer(ConsumerCore):
    """Calls `handler` with every message of a stream until it is stopped.

    If the handler returns, the message is acknowledged. If it raises, it is called again; after the
    last attempt the message becomes a dead letter. If a worker dies after handling a message and
    before acknowledging it, the message is handled again, so make the handler idempotent. Redis
    errors are logged and retried, never raised.
    """

    redis: RedisClient
    handler: Callable[[Message], object]

    def run(self) -> None:
        """Handle messages until :meth:`stop` is called."""
        with self._extending_claims():
            run_effects(self._work(), self._perform)

    def step(self, wait_seconds: float = 0.0) -> int:
        """Handle one reclaimed message, if any, and a batch of new messages; return their number.

        Raises the errors of the Redis client.
        """
        with self._extending_claims():
            return run_effects(self._handle_batch(wait_seconds), self._perform)

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Handle):
            return self.handler(effect.message)
        if isinstance(effect, Sleep):
            return time.sleep(effect.seconds)
        return self.redis.execute_command(*effect, **RAW_OPTIONS)

    @contextlib.contextmanager
    def _extending_claims(self) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._extend_claims, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(timeout=5)
            with contextlib.suppress(Exception):
                run_effects(self._release(), self._perform)

    def _extend_claims(self, ended: threading.Event) -> None:
        while not ended.wait(self._extend_seconds):
            if ids := self._claimed.to_extend(time.monotonic()):
                with contextlib.suppress(Exception):  # The next extension is early enough.
                    run_exchange(self.redis, exchanges.extend_claims(self, ids))


def dead_letter(redis: RedisClient, **arguments: Unpack[DeadLetterArguments]) -> Result:
    """Put one message among the dead letters and acknowledge it to its group, in one step.

        except Exception as error:
            dead_letter(client, stream="axiom:events", group="mailer", entry_id=id, error=error,
                        attempts=3)

    The message's content is read from the stream. Pass `fields` for a message that is no longer in
    the stream or was not read from a group. With `consumer`, do nothing unless the message is still
    pending for this consumer. A repeated call has no effect, and its outcome is `SETTLED`.

    Raise :class:`ValueError` or :class:`TypeError` for invalid arguments, before anything is done,
    and the errors of the Redis client.
    """
    letter = letters.make_letter(**arguments)
    one_slot = exchanges.share_slot(redis, letter.stream, letter.dead_stream)
    return run_exchange(redis, letter.bury(one_slot=one_slot))
