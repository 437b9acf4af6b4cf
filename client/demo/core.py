"""Core: what visitors talk to. It asks oracle and synapse, and writes an event of some answers."""

import logging
import os
import random
import secrets
from collections.abc import Mapping
from typing import Any, Protocol

import redis

from demo import page, world
from demo.calling import Unreachable, call
from demo.faults import Broken, Faults
from demo.serving import Answer, Body, Service, refused, serve
from switchgear import SwitchEngaged, Switchgear

CALL_SECONDS = 4.0
EVENT_SHARE = 0.1
GARBLED_SHARE = 0.005
MOST_EVENTS = 10_000
PATHS = {world.NL2SQL: ("oracle", "/answer"), world.ONTOLOGY: ("synapse", "/lookup")}

log = logging.getLogger("demo")


class Stream(Protocol):
    """As much of Redis as core needs."""

    def xadd(self, name: str, fields: dict[Any, Any], *, maxlen: int) -> Any: ...


class Core:
    """`ports` are those of the services it calls."""

    def __init__(
        self, gear: Switchgear, faults: Faults, ports: Mapping[str, int], stream: Stream
    ) -> None:
        self._gear = gear
        self._faults = faults
        self._ports = ports
        self._stream = stream
        self._availability = gear.sli("core-availability")
        self._errors = gear.sli("core-error-rate")
        self._quick = gear.sli("core-p95-latency")
        self._bearable = gear.sli("core-p99-latency")

    def ask(self, question: Body) -> Answer:
        """A visitor's question: `{"user", "segment", "intent"}`."""
        intent, user = str(question.get("intent")), str(question.get("user"))
        if intent not in PATHS:
            return Answer(400, {"error": f"intent must be one of {', '.join(PATHS)}"})
        decision = self._gear.check(
            segment=str(question.get("segment")), feature=intent, targeting_key=user
        )
        if not decision:
            return refused(decision)
        try:
            with (
                self._availability.measure(),
                self._errors.measure(),
                self._quick.measure(within_seconds=3.0),
                self._bearable.measure(within_seconds=8.0),
            ):
                self._faults.strike()
                found = self._find(intent, question)
        except Unreachable as error:
            return Answer(502, {"error": str(error)})
        if random.random() < EVENT_SHARE:  # noqa: S311
            self._tell(question)
        return Answer(200, found)

    def _find(self, intent: str, question: Body) -> dict[str, Any]:
        service, path = PATHS[intent]
        status, said = call(self._ports[service], path, question, seconds=CALL_SECONDS)
        if status == 503 and "switch" in said:
            # Theirs heard of it sooner. A call that a switch stops is nobody's failure.
            raise SwitchEngaged(said["switch"], said.get("reason"))
        if status != 200:
            raise Broken(f"{service}: {said.get('error', status)}")
        return said

    def _tell(self, question: Body) -> None:
        """Now and then somebody writes an amount as people do, and nobody can read it."""
        amount = f"{random.uniform(1, 900):.2f}"  # noqa: S311
        if self._faults.garbles() or random.random() < GARBLED_SHARE:  # noqa: S311
            amount = amount.replace(".", ",")
        event = {
            "type": "question.answered",
            "case": f"C-{secrets.token_hex(3)}",
            "segment": str(question.get("segment")),
            "amount": amount,
        }
        try:
            self._stream.xadd(world.EVENTS, event, maxlen=MOST_EVENTS)
        except redis.RedisError as error:
            log.warning("an event is lost: %s", type(error).__name__)


def main() -> None:
    faults = Faults()
    ports = {name: world.port(name) for name in world.SERVICES}
    stream = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=2)
    with world.join("core") as gear:
        gear.on_change(lambda change: log.info("%s is %s", change.switch, change.after))
        core = Core(gear, faults, ports, stream)
        pages = page.Pages(gear, ports, os.environ.get("SWITCHGEAR_URL", ""))
        routes = {
            ("POST", "/ask"): core.ask,
            ("GET", "/"): pages.show,
            ("POST", "/"): pages.change,
        }
        serve(Service(routes, faults), ports["core"])


if __name__ == "__main__":
    main()
