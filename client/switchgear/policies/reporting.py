"""What a report says of breakers and bulkheads, and which of it the console has taken in."""

from collections import deque
from collections.abc import Iterator
from typing import Any

from switchgear.clock import ConsoleClock
from switchgear.console.report_builder import format_time
from switchgear.patterns.generation import StateTransition
from switchgear.policies.dependency import Dependency
from switchgear.policies.registry import MAX_BREAKERS, MAX_BULKHEADS, Registry

MAX_NOTIFIED = 1000
MAX_PUBLISHED_BYTES = 200 * 2**10
"""Transitions in one report, so that it is not too large; the rest is in the next, which follows at
once."""
STEP_BYTES = 140
"""One in JSON, but for its cause."""
MAX_CAUSE_LENGTH = 200


class Reporting:
    """Of one thread. Times are by the console's clock."""

    def __init__(self, registry: Registry, clock: ConsoleClock, service: str) -> None:
        self._registry, self._clock, self._service = registry, clock, service
        self._told: dict[str, set[int]] = {}
        """The numbers of the transitions in the latest report, by dependency."""

    def __call__(self) -> dict[str, Any]:
        """The fields of a report, as they stand now. Without any breaker they say nothing."""
        self._told = {}
        if not self._registry.dependencies():
            return {}
        # First this: it may be in force before they are looked at, but not after.
        version = self._registry.version(self._service)
        fields: dict[str, Any] = {
            "breakers": list(self._breakers()),
            "bulkheads": list(self._bulkheads()),
        }
        return fields if version is None else {**fields, "config_version": version}

    def confirm_delivery(self) -> bool:
        """The console has taken in the latest report; whether there is more to be told."""
        told, self._told = self._told, {}
        there = self._with_breakers()
        for each in there:
            if each.name in told:
                _drop(each.steps, told[each.name])
        return any(each.steps for each in there)

    def _with_breakers(self) -> list[Dependency]:
        there = self._registry.dependencies()
        return [each for each in there if each.breaker is not None][:MAX_BREAKERS]

    def _breakers(self) -> Iterator[dict[str, Any]]:
        room = _Room()
        for each in self._with_breakers():
            breaker = each.breaker
            if breaker is None:
                continue
            look = breaker.look()
            # Two threads may have noted theirs in the wrong order.
            steps = room.first_of(sorted(each.steps.copy(), key=lambda step: step.n))
            if steps:
                self._told[each.name] = {step.n for step in steps}
            rates = {"failure_rate": look.failure_rate, "slow_rate": look.slow_rate}
            yield {
                "dependency": each.name,
                "state": look.state,
                "mode": look.mode,
                "since": format_time(self._clock.at(look.since)),
                **{name: round(rate, 4) for name, rate in rates.items() if rate is not None},
                "calls": look.calls,
                "counters": {name: n for name, n in each.counters.counted().items() if n},
                "transitions": [self._step(step) for step in steps],
            }

    def _step(self, step: StateTransition) -> dict[str, Any]:
        return {
            "n": step.n,
            "from": step.before,
            "to": step.after,
            "at": format_time(self._clock.at(step.at)),
            "cause": _cause(step),
        }

    def _bulkheads(self) -> Iterator[dict[str, Any]]:
        there = self._registry.dependencies()
        limited = [each for each in there if each.bulkhead and each.bulkhead.parameters]
        for each in limited[:MAX_BULKHEADS]:
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


class _Room:
    """What is left of one report for transitions."""

    def __init__(self) -> None:
        self._steps, self._bytes = MAX_NOTIFIED, MAX_PUBLISHED_BYTES

    def first_of(self, steps: list[StateTransition]) -> list[StateTransition]:
        """As many of them as there is room for."""
        fit: list[StateTransition] = []
        for step in steps[: self._steps]:
            self._bytes -= STEP_BYTES + len(_cause(step).encode(errors="replace"))
            if self._bytes < 0:
                self._steps = 0
                return fit
            fit.append(step)
        self._steps -= len(fit)
        return fit


def _cause(step: StateTransition) -> str:
    return step.cause[:MAX_CAUSE_LENGTH]


def _drop(steps: deque[StateTransition], numbers: set[int]) -> None:
    """Take those away; others may come in meanwhile, and their order does not matter."""
    for _ in range(len(steps)):
        step = steps.popleft()
        if step.n not in numbers:
            steps.append(step)
