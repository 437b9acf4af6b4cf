"""Dead letters: messages of a Redis stream whose handling failed for good.

A :class:`Consumer` reads a stream in a consumer group, retries messages, and moves those that fail
for good to the dead letters; :func:`dead_letter` does the last step alone, for a consumer of your
own. Both exist for asyncio as well. Bring your own Redis client (redis-py, any settings).

    consumer = Consumer(redis=client, stream="axiom:events", group="mailer", handler=send)
    consumer.run()
"""

from typing import TYPE_CHECKING

from switchgear.dlq.consumer import Consumer, dead_letter
from switchgear.dlq.letters import Outcome, Result
from switchgear.dlq.messages import Message
from switchgear.dlq.names import Names
from switchgear.dlq.settings import Counts, Settings, WorkersDied

__all__ = [
    "AsyncConsumer",
    "Consumer",
    "Counts",
    "Message",
    "Names",
    "Outcome",
    "Result",
    "Settings",
    "WorkersDied",
    "dead_letter",
    "dead_letter_async",
]

if TYPE_CHECKING:
    from switchgear.dlq.async_consumer import AsyncConsumer, dead_letter_async
else:

    def __getattr__(name: str) -> object:
        """Import a name that needs asyncio, at its first use."""
        if name not in ("AsyncConsumer", "dead_letter_async"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from switchgear.dlq import async_consumer

        return getattr(async_consumer, name)
