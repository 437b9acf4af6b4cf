"""The demo service `core`, which answers visitors by calling the services oracle and synapse."""

import logging
import os
import random
import secrets
from collections.abc import Mapping
from typing import Any, Protocol

import redis

from demo import console, page, world
from demo.faults import Faults
from demo.http_calls import Unreachable
from demo.http_service import Body, FaultyService, ServiceResponse, refuse_call, serve
from demo.service_calls import ServiceCalls
from switchgear import Refused, SwitchEngaged, Switchgear

EVENT_SHARE = 0.1
GARBLED_SHARE = 0.005
MAX_EVENTS = 10_000
AWAY: Mapping[str, str] = {
    world.NL2SQL: "ORACLE_UNAVAILABLE",
    world.ONTOLOGY: "SYNAPSE_UNAVAILABLE",
}
"""Error codes that core returns, by the intent whose service is unavailable."""

log = logging.getLogger("demo")


class EventWriter(Protocol):
    """Interface of a Redis client, reduced to the method by which core writes events."""

    def xadd(self, name: str, fields: dict[Any, Any], *, maxlen: int) -> Any: ...


class Core:
    """The HTTP request handlers of the service core."""

    def __init__(
        self, gear: Switchgear, faults: Faults, calls: ServiceCalls, stream: EventWriter
    ) -> None:
        self._gear = gear
        self._faults = faults
        self._calls = calls
        self._stream = stream
        self._availability = gear.sli("core-availability")
        self._errors = gear.sli("core-error-rate")
        self._quick = gear.sli("core-p95-latency")
        self._bearable = gear.sli("core-p99-latency")
        self._whole = gear.sli("core-whole-answers")

    def ask(self, question: Body) -> ServiceResponse:
        """Answer a visitor's question, a JSON object with `user`, `segment` and `intent`."""
        intent, user = str(question.get("intent")), str(question.get("user"))
        if intent not in AWAY:
            return ServiceResponse(400, {"error": f"intent must be one of {', '.join(AWAY)}"})
        decision = self._gear.check(
            segment=str(question.get("segment")), feature=intent, targeting_key=user
        )
        if not decision:
            return refuse_call(decision)
        try:
            found = self._answer_measured(intent, question)
        except Unreachable as error:
            return ServiceResponse(502, {"error": str(error), "code": AWAY[intent]})
        except SwitchEngaged:
            raise
        except Refused as error:
            return ServiceResponse(503, {"error": str(error), "code": AWAY[intent]})
        if random.random() < EVENT_SHARE:  # noqa: S311
            self._write_event(question)
        return ServiceResponse(200, found)

    def show_switches(self, _: Body) -> ServiceResponse:
        return ServiceResponse(200, {"engaged_or_ramping": self._gear.status().stopped})

    def _answer_measured(self, intent: str, question: Body) -> dict[str, Any]:
        """Return the answer, labeled if it is partial, and count the question in core's SLIs.

        A rejection by a breaker counts as a bad event; a refusal by a kill switch does not count.
        """
        with (
            self._availability.measure(),
            self._errors.measure(),
            self._quick.measure(within_seconds=3.0),
            self._bearable.measure(within_seconds=8.0),
        ):
            self._faults.strike()
            answer = self._calls.ask(intent, question)
        (self._whole.bad if answer.is_partial else self._whole.good)()
        label = {"partial": True, "source": answer.source} if answer.is_partial else {}
        return {**answer.value, **label}

    def _write_event(self, question: Body) -> None:
        """Write an event to the stream; a few have an amount that synapse can't parse."""
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
            self._stream.xadd(world.EVENTS, event, maxlen=MAX_EVENTS)
        except redis.RedisError as error:
            log.warning("event lost: %s", type(error).__name__)


def main() -> None:
    faults = Faults()
    ports = {name: world.service_port(name) for name in world.SERVICES}
    stream = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=2)
    with world.connect("core") as gear:
        gear.on_change(lambda change: log.info("%s", console.describe_change(change)))
        calls = ServiceCalls(gear, ports)
        core = Core(gear, faults, calls, stream)
        policies = tuple(calls.policies.values())
        pages = page.Pages(gear, ports, os.environ.get("SWITCHGEAR_URL", ""), policies)
        routes = {
            ("POST", "/ask"): core.ask,
            ("GET", "/switches"): core.show_switches,
            ("GET", "/"): pages.show,
            ("GET", "/page.css"): pages.show_style,
            ("POST", "/"): pages.change,
        }
        serve(FaultyService(routes, faults), ports["core"])
    if leftovers := console.describe_leftovers():  # After the client's final report.
        log.info("%s", leftovers)


if __name__ == "__main__":
    main()
