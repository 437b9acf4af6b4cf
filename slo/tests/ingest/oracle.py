"""An oracle for counters: each figure computed from all samples, by the words of the contract.

Without rows, batches or differences.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

US = 1_000_000
TWO_MINUTES = 120 * US


@dataclass(frozen=True)
class OracleSample:
    """One sample as sent; times in microseconds since 1970."""

    source: str
    boot: str
    at: int
    good: float
    total: float
    started: int | None = None


@dataclass(frozen=True)
class Step:
    began: int
    ended: int
    good: float
    total: float


class Oracle:
    """Counters of one SLI, from everything that was ever sent."""

    def __init__(self, sent: Iterable[OracleSample]) -> None:
        self._steps: list[Step] = []
        self._spans: list[tuple[int, int]] = []
        by_source: dict[str, dict[str, dict[int, OracleSample]]] = {}
        for one in sent:
            boot = by_source.setdefault(one.source, {}).setdefault(one.boot, {})
            stored = boot.get(one.at)
            if stored is None or (one.total, one.good) > (stored.total, stored.good):
                boot[one.at] = one
        for boots in by_source.values():
            self._read(boots)

    def good(self, minute: int) -> float:
        return sum(self._events_by(step, step.good, minute) for step in self._steps)

    def bad(self, minute: int) -> float:
        return sum(self._events_by(step, step.total - step.good, minute) for step in self._steps)

    def is_covered(self, minute: int) -> bool:
        begins, ends = (minute - 1) * 60 * US, minute * 60 * US
        return any(began < ends and ended > begins for began, ended in self._spans)

    def counts(self, first: int, last: int) -> list[tuple[float, float, int]]:
        """Return good, total and covered minutes at the end of each minute."""
        result, covered = [], 0
        for minute in range(first, last + 1):
            covered += self.is_covered(minute)
            good = self.good(minute)
            result.append((good, good + self.bad(minute), covered))
        return result

    def _read(self, boots: dict[str, dict[int, OracleSample]]) -> None:
        everything = sorted({at for samples in boots.values() for at in samples})
        self._span(pairwise(everything))
        for name, samples in boots.items():
            times = sorted(samples)
            others = [at for one, more in boots.items() if one != name for at in more]
            first = samples[times[0]]
            starts = [one.started for one in samples.values() if one.started is not None]
            before = [at for at in others if at < times[0]]
            if starts:
                began = min(starts)
                self._from_zero(min(began, times[0]), first)
                after = [at for at in times if at > began]
                self._span([(began, at) for at in after[:1]])
            elif before:
                self._from_zero(max(before), first)
            for one, other in pairwise(times):
                self._step(samples[one], samples[other])

    def _from_zero(self, since: int, first: OracleSample) -> None:
        self._steps.append(Step(since, first.at, first.good, first.total))

    def _step(self, one: OracleSample, other: OracleSample) -> None:
        went_down = (
            other.good < one.good
            or other.total < one.total
            or other.total - other.good < one.total - one.good
        )
        if went_down:
            self._steps.append(Step(one.at, other.at, other.good, other.total))
        else:
            good, total = other.good - one.good, other.total - one.total
            self._steps.append(Step(one.at, other.at, good, total))

    def _span(self, spans: Iterable[tuple[int, int]]) -> None:
        self._spans += [(one, other) for one, other in spans if other - one <= TWO_MINUTES]

    @staticmethod
    def _events_by(step: Step, events: float, minute: int) -> float:
        """Return how many of a step's events came by the end of a minute."""
        end = minute * 60 * US
        if step.ended <= end:
            return events
        if end <= step.began or step.ended - step.began <= TWO_MINUTES:
            return 0
        if -(-step.ended // (60 * US)) == minute:
            return events
        parts = 1 if float(step.good).is_integer() and float(step.total).is_integer() else 1024
        share = Fraction(end - step.began, step.ended - step.began)
        return (int(events * parts) * share // 1) / parts
