"""Core's calls to oracle and synapse, each guarded by a policy that the console can change.

Oracle's answers are cached: while oracle fails, visitors get an earlier answer, labeled as partial.
"""

from collections.abc import Callable, Mapping
from typing import Any

from demo import world
from demo.faults import InjectedFailure
from demo.http_calls import call
from demo.http_service import Body, get_user
from switchgear import Answer, Fallback, Policy, SwitchEngaged, Switchgear
from switchgear.patterns.caches import MemoryCache

MAX_SECONDS = 10.0
"""Upper limit of every timeout that the console configures."""
TRY_SECONDS = 3.0
KEPT_SECONDS = 900.0
MAX_KEPT = 120
"""Maximum number of cached answers. It is lower than the number of visitors, 200, so that some
visitors get an error during an outage."""


class Failed(InjectedFailure):
    """Raised for an error response of a called service; `status` is the HTTP status."""

    def __init__(self, service: str, status: int, why: object) -> None:
        super().__init__(f"{service}: {why}")
        self.status = status


class ServiceCalls:
    """Core's calls to the services at `ports`, each guarded by its policy."""

    def __init__(self, gear: Switchgear, ports: Mapping[str, int]) -> None:
        self._ports = ports
        self.policies: Mapping[str, Policy] = {
            world.NL2SQL: gear.policy(
                "core->oracle",
                timeout_seconds=TRY_SECONDS,
                fallback=Fallback(
                    cache=MemoryCache(KEPT_SECONDS, MAX_KEPT),
                    cache_key=lambda question: (get_user(question), str(question.get("segment"))),
                ),
            ),
            world.ONTOLOGY: gear.policy("core->synapse", timeout_seconds=TRY_SECONDS),
        }
        self._calls: Mapping[str, Callable[[Body], dict[str, Any]]] = {
            world.NL2SQL: lambda question: self._call("oracle", "/answer", question),
            world.ONTOLOGY: lambda question: self._call("synapse", "/lookup", question),
        }

    def ask(self, intent: str, question: Body) -> Answer[dict[str, Any]]:
        """Send the question to the service for this intent; return its answer, or a fallback's.

        Raise :class:`Failed`, `Unreachable` or `Refused` if no fallback applies.
        """
        return self.policies[intent].run(self._calls[intent], question)

    def _call(self, service: str, path: str, question: Body) -> dict[str, Any]:
        status, answer = call(self._ports[service], path, question, seconds=MAX_SECONDS)
        if status == 503 and "switch" in answer:
            # The service applied the switch first; a stopped call is not a failure.
            raise SwitchEngaged(answer["switch"], answer.get("reason"))
        if status != 200:
            raise Failed(service, status, answer.get("error", status))
        return answer
