"""How core asks oracle and synapse: each by a policy of its own, which the console may change.

Oracle's answers are kept. While it gives none, a visitor is told what was answered before, labelled
as partial; who was never answered is told that oracle is away.
"""

from collections.abc import Callable, Mapping
from typing import Any

from demo import world
from demo.calling import call
from demo.faults import Broken
from demo.serving import Body
from switchgear import Answer, Fallback, Policy, SwitchEngaged, Switchgear
from switchgear.patterns.caches import MemoryCache

MAX_SECONDS = 10.0
"""Whatever the console says."""
TRY_SECONDS = 3.0
KEPT_SECONDS = 900.0
MAX_KEPT = 120
"""Of 200 visitors, so that an outage shows both: answers of before, and none."""


class Failed(Broken):
    """A service said that it could not answer; `status` is that of HTTP."""

    def __init__(self, service: str, status: int, why: object) -> None:
        super().__init__(f"{service}: {why}")
        self.status = status


class Asking:
    """`ports` are those of the services."""

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
        """Raises :class:`Failed`, `Unreachable`, or a `Refused`, if nothing can stand in."""
        return self.policies[intent].run(self._calls[intent], question)

    def _call(self, service: str, path: str, question: Body) -> dict[str, Any]:
        status, said = call(self._ports[service], path, question, seconds=MAX_SECONDS)
        if status == 503 and "switch" in said:
            # Theirs heard of it sooner. A call that a switch stops is nobody's failure.
            raise SwitchEngaged(said["switch"], said.get("reason"))
        if status != 200:
            raise Failed(service, status, said.get("error", status))
        return said


def _key(question: Body) -> tuple[str, str]:
    return str(question.get("user")), str(question.get("segment"))
