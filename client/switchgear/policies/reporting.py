"""What a report says of breakers and bulkheads, and which of it the console has taken in."""

from collections.abc import Iterator
from typing import Any

from switchgear.clock import ConsoleClock
from switchgear.following.reports import moment
from switchgear.patterns.terms import Transition
from switchgear.policies.dependency import Dependency
from switchgear.policies.registry import MOST_BREAKERS, MOST_BULKHEADS, Registry

MOST_STEPS = 200
"""In one report, so that it is not too large; the rest is in the next, which follows at once."""
LONGEST_CAUSE = 200


class Reporting:
    """Of one thread. Times are by the console's clock."""

    def __init__(self, registry: Registry, clock: ConsoleClock, service: str) -> None:
        self._registry, self._clock, self._service = registry, clock, service
        self._told: dict[str, int] = {}
        """The number of the last transition in the latest report, by dependency."""

    def __call__(self) -> dict[str, Any]:
        """The fields of a report, as they stand now. Without any breaker they say nothing."""
        self._told = {}
        if not self._registry.dependencies():
            return {}
        fields: dict[str, Any] = {
            "breakers": list(self._breakers()),
            "bulkheads": list(self._bulkheads()),
        }
        version = self._registry.version(self._service)
        return fields if version is None else {**fields, "config_version": version}

    def accepted(self) -> bool:
        """The console has taken in the latest report; whether there is more to be told."""
        told, self._told = self._told, {}
        more = False
        for each in self._with_breakers():
            steps, last = each.steps, told.get(each.name, 0)
            while steps and steps[0].n <= last:
                steps.popleft()
            more = more or bool(steps)
        return more

    def _with_breakers(self) -> list[Dependency]:
        there = self._registry.dependencies()
        return [each for each in there if each.breaker is not None][:MOST_BREAKERS]

    def _breakers(self) -> Iterator[dict[str, Any]]:
        room = MOST_STEPS
        ahead = self._clock.now() - self._clock.time.monotonic()
        for each in self._with_breakers():
            breaker = each.breaker
            if breaker is None:
                continue
            look = breaker.look()
            steps = sorted(each.steps.copy(), key=lambda step: step.n)[:room]
            room -= len(steps)
            if steps:
                self._told[each.name] = steps[-1].n
            rates = {"failure_rate": look.failure_rate, "slow_rate": look.slow_rate}
            yield {
                "dependency": each.name,
                "state": look.state,
                "mode": look.mode,
                "since": moment(look.since + ahead),
                **{name: round(rate, 4) for name, rate in rates.items() if rate is not None},
                "calls": look.calls,
                "counters": {name: n for name, n in each.counters.counted().items() if n},
                "transitions": [_step(step, ahead) for step in steps],
            }

    def _bulkheads(self) -> Iterator[dict[str, Any]]:
        there = self._registry.dependencies()
        limited = [each for each in there if each.bulkhead and each.bulkhead.parameters]
        for each in limited[:MOST_BULKHEADS]:
            bulkhead = each.bulkhead
            if bulkhead is None:
                continue
            look = bulkhead.look()
            if look.limit is None:
                continue
            yield {
                "name": each.name,
                "in_flight": look.in_flight,
                "limit": look.limit,
                "queued": look.queued,
                "queue_limit": look.queue_limit,
                "rejected": look.rejected,
            }


def _step(step: Transition, ahead: float) -> dict[str, Any]:
    return {
        "n": step.n,
        "from": step.before,
        "to": step.after,
        "at": moment(step.at + ahead),
        "cause": step.cause[:LONGEST_CAUSE],
    }
