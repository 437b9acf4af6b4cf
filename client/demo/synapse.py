"""Synapse: looks terms up, and reads core's events from a stream.

An event that it can't parse becomes a dead letter after three attempts: in the console somebody
corrects its amount and replays it.
"""

import os
import threading
from decimal import Decimal, InvalidOperation

import redis

from demo import world
from demo.faults import Faults
from demo.http_service import Answer, Body, Service, serve
from switchgear import Switchgear
from switchgear.dlq import Consumer, Message

GROUP = "synapse_group"
BACKOFF_SECONDS = 0.2


class UnreadableAmount(ValueError):
    """The amount of an event is not a number."""

    __module__ = "demo.synapse"  # Not `__main__`, which is what letters would be grouped by.


class Synapse:
    """Terms of the ontology, and the sum of all events."""

    def __init__(self, gear: Switchgear, faults: Faults) -> None:
        self._faults = faults
        self._lookups = gear.sli("synapse-lookups")
        self.amounts = Decimal(0)
        self.lookup = gear.guard(feature=world.ONTOLOGY, targeting_key=_user)(self._lookup)

    def _lookup(self, question: Body) -> Answer:
        with self._lookups.measure():
            self._faults.strike()
        return Answer(200, {"terms": ["case", "amount", str(question.get("segment"))]})

    def take(self, message: Message) -> None:
        """Handle one event. Raise an error if that fails."""
        self._faults.strike()
        written = message.fields.get("amount", "")
        try:
            self.amounts += Decimal(written)
        except InvalidOperation:
            raise UnreadableAmount(f"amount {written!r} is no number: write it as 12.50") from None


def _user(question: Body) -> str:
    return str(question.get("user"))


def main() -> None:
    faults = Faults()
    with world.join("synapse") as gear:
        synapse = Synapse(gear, faults)
        consumer = Consumer(
            redis=redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=5),
            stream=world.EVENTS,
            group=GROUP,
            handler=synapse.take,
            backoff_seconds=BACKOFF_SECONDS,
            start="$",
        )
        reading = threading.Thread(target=consumer.run, daemon=True)
        reading.start()
        serve(Service({("POST", "/lookup"): synapse.lookup}, faults), world.port("synapse"))
        consumer.stop()
        reading.join(timeout=2)


if __name__ == "__main__":
    main()
