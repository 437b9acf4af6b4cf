"""Core's calls to oracle and synapse, each by a policy that the console may change.

Oracle's answers are cached. While it fails, visitors get an earlier answer, labelled as partial, or
an error if there is none.
"""

from collections.abc import Callable, Mapping
from typing import Any

from demo import world
from demo.faults import Broken
from demo.http_calls import call
from demo.http_service import Body
from switchgear import Answer, Fallback, Policy, SwitchEngaged, Switchgear
from switchgear.patterns.caches import MemoryCache

MAX_SECONDS = 10.0
"""Longest timeout, whatever the console configures."""
TRY_SECONDS = 3.0
KEPT_SECONDS = 900.0
MAX_KEPT = 120
"""Of 200 visitors, so that an outage shows both: earlier answers, and none."""


class Failed(Broken):
    """A service answered with an error; `status` is the HTTP status."""

    def __init__(self, service: str, status: int, why: object) -> None:
        super().__init__(f"{service}: {why}")
        self.status = status


class ServiceCalls:
    """Calls the services at `ports`."""

    def __init__(self, gear: Switchgear, ports: Mapping[str, int]) -> None:
        self._ports = ports
        self.policies: Mapping[str, Policy] = {
            world.NL2SQL: gear.policy(
                "core->oracle",
                timeout_seconds=TRY_SECONDS,
                fallback=Fallback(cache=MemoryCache(KEPT_SECONDS, MAX_KEPT), cache_key=_key),
            ),
            world.ONTOLOGY: gear.policy("core->synapse", timeout_seconds=TRY_SECONDS),
        }
        self._calls: Mapping[str, Callable[[Body], dict[str, Any]]] = {
            world.NL2SQL: lambda question: self._call("oracle", "/answer", question),
            world.ONTOLOGY: lambda question: self._call("synapse", "/lookup", question),
        }

    def ask(self, intent: str, question: Body) -> Answer[dict[str, Any]]:
        """Return the answer.

        Raise :class:`Failed`, `Unreachable`, or a `Refused`, if no fallback answers.
        """
        return self.policies[intent].run(self._calls[intent], question)

    def _call(self, service: str, path: str, question: Body) -> dict[str, Any]:
        status, said = call(self._ports[service], path, question, seconds=MAX_SECONDS)
        if status == 503 and "switch" in said:
            # The service got the change first. A stopped call is not a failure.
            raise SwitchEngaged(said["switch"], said.get("reason"))
        if status != 200:
            raise Failed(service, status, said.get("error", status))
        return said


def _key(question: Body) -> tuple[str, str]:
    return str(question.get("user")), str(question.get("segment"))
