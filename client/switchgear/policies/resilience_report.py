"""The part of a client's reports to the console about breakers, transitions and bulkheads."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from switchgear.clock import ConsoleClock
from switchgear.console.report_builder import format_time
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.generation import StateTransition
from switchgear.policies.dependency import Dependency
from switchgear.policies.registry import MAX_BREAKERS, MAX_BULKHEADS, Registry

MAX_TRANSITIONS = 1000
MAX_TRANSITION_BYTES = 200 * 2**10
"""Maximum size of the transitions in one report; the rest is reported at once after it."""
TRANSITION_BYTES = 140
"""The size of one transition in JSON, without its cause."""
MAX_CAUSE_LENGTH = 200


class ResilienceReport:
    """Adds breakers and bulkheads to a client's reports. Times are by the console's clock."""

    def __init__(self, registry: Registry, clock: ConsoleClock, service: str) -> None:
        self._registry, self._clock, self._service = registry, clock, service
        self._sent: dict[str, set[int]] = {}
        """The numbers of the transitions in the latest report, by dependency."""

    def __call__(self) -> dict[str, Any]:
        """Return the fields of the next report; none without any dependency."""
        self._sent = {}
        if not self._registry.dependencies():
            return {}
        # Read before the breakers: it must not be newer than what they apply.
        version = self._registry.version(self._service)
        fields: dict[str, Any] = {
            "breakers": list(self._breakers()),
            "bulkheads": list(self._bulkheads()),
        }
        return fields if version is None else {**fields, "config_version": version}

    def confirm_delivery(self) -> bool:
        """Drop the transitions in the last report, which the console has accepted.

        Return True if there are more to send.
        """
        sent, self._sent = self._sent, {}
        dependencies = [each for each, _breaker in self._with_breakers()]
        for each in dependencies:
            if each.name in sent:
                _remove_transitions(each.transitions, sent[each.name])
        return any(each.transitions for each in dependencies)

    def _with_breakers(self) -> list[tuple[Dependency, Breaker]]:
        dependencies = self._registry.dependencies()
        pairs = [(each, each.breaker) for each in dependencies if each.breaker is not None]
        return pairs[:MAX_BREAKERS]

    def _breakers(self) -> Iterator[dict[str, Any]]:
        quota = _TransitionQuota()
        for each, breaker in self._with_breakers():
            status = breaker.look()
            # Two threads may have appended in the wrong order.
            steps = quota.take_first(sorted(each.transitions.copy(), key=lambda step: step.n))
            if steps:
                self._sent[each.name] = {step.n for step in steps}
            rates = {"failure_rate": status.failure_rate, "slow_rate": status.slow_rate}
            yield {
                "dependency": each.name,
                "state": status.state,
                "mode": status.mode,
                "since": format_time(self._clock.from_monotonic(status.since)),
                **{name: round(rate, 4) for name, rate in rates.items() if rate is not None},
                "calls": status.calls,
                "counters": {name: n for name, n in each.counters.counted().items() if n},
                "transitions": [
                    {
                        "n": step.n,
                        "from": step.before,
                        "to": step.after,
                        "at": format_time(self._clock.from_monotonic(step.at)),
                        "cause": step.cause[:MAX_CAUSE_LENGTH],
                    }
                    for step in steps
                ],
            }

    def _bulkheads(self) -> Iterator[dict[str, Any]]:
        bulkheads = [each.bulkhead for each in self._registry.dependencies() if each.bulkhead]
        limited = [each for each in bulkheads if each.parameters]
        for each in limited[:MAX_BULKHEADS]:
            status = each.look()
            if status.limit is None:
                continue
            yield {
                "name": each.name,
                "in_flight": status.in_flight,
                "limit": status.limit,
                "queued": status.queued,
                "queue_limit": status.queue_limit,
                "rejected": status.rejected,
            }


class _TransitionQuota:
    def __init__(self) -> None:
        self._steps, self._bytes = MAX_TRANSITIONS, MAX_TRANSITION_BYTES

    def take_first(self, steps: list[StateTransition]) -> list[StateTransition]:
        """Return the first transitions that fit into the rest of this report."""
        fit: list[StateTransition] = []
        for step in steps[: self._steps]:
            cause = step.cause[:MAX_CAUSE_LENGTH]
            self._bytes -= TRANSITION_BYTES + len(cause.encode(errors="replace"))
            if self._bytes < 0:
                self._steps = 0
                return fit
            fit.append(step)
        self._steps -= len(fit)
        return fit


def _remove_transitions(steps: deque[StateTransition], numbers: set[int]) -> None:
    """Remove the transitions with these numbers, while other threads may add transitions.

    The order of the remaining ones may change, which does not matter.
    """
    for _ in range(len(steps)):
        step = steps.popleft()
        if step.n not in numbers:
            steps.append(step)
