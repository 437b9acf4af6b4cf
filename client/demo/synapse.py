"""The demo service `synapse`, which looks up terms and consumes core's events from a stream.

An event that can't be parsed becomes a dead letter after three attempts; an operator can fix its
amount in the console and replay it.
"""

import os
import threading
from decimal import Decimal, InvalidOperation

import redis

from demo import world
from demo.faults import Faults
from demo.http_service import Body, FaultyService, ServiceResponse, get_user, serve
from switchgear import Switchgear
from switchgear.dlq import Consumer, Message

GROUP = "synapse_group"
BACKOFF_SECONDS = 0.2


class UnreadableAmount(ValueError):
    """Raised for an event whose amount is not a number."""

    __module__ = "demo.synapse"  # Not `__main__`: letters are grouped by this name.


class Synapse:
    """The handlers of the service synapse, for HTTP requests and for events of the stream."""

    def __init__(self, gear: Switchgear, faults: Faults) -> None:
        self._faults = faults
        self._lookups = gear.sli("synapse-lookups")
        self.amounts = Decimal(0)
        self.lookup = gear.guard(feature=world.ONTOLOGY, targeting_key=get_user)(self._lookup)

    def _lookup(self, question: Body) -> ServiceResponse:
        with self._lookups.measure():
            self._faults.strike()
        return ServiceResponse(200, {"terms": ["case", "amount", str(question.get("segment"))]})

    def take(self, message: Message) -> None:
        """Consume an event: add its amount to the total.

        Raise :class:`UnreadableAmount` if the amount is not a number.
        """
        self._faults.strike()
        written = message.fields.get("amount", "")
        try:
            self.amounts += Decimal(written)
        except InvalidOperation:
            raise UnreadableAmount(
                f"amount {written!r} is not a number: use a decimal point, as in"
                f" {written.replace(',', '.')}"
            ) from None


def main() -> None:
    faults = Faults()
    with world.connect("synapse") as gear:
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
        service = FaultyService({("POST", "/lookup"): synapse.lookup}, faults)
        serve(service, world.service_port("synapse"))
        consumer.stop()
        reading.join(timeout=2)


if __name__ == "__main__":
    main()
