"""Breakers and bulkheads in reports: the stored document, and the changes it brings. Pure.

An instance's row stores all of them as its boot last reported. Changes are computed against that
row: breakers that look different, transitions, and counter increments.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from controlplane.core.canonical import timestamp

from . import boots
from .instance_rows import InstanceReport, InstanceRow, ReportedTransition
from .report_fields import COUNTERS, MAX_BREAKERS

MAX_FORMER = MAX_BREAKERS
"""Most removed breakers whose counters are kept, so that one that returns adds only new counts."""
MAX_GROWTH = 1_000_000_000
"""Largest plausible increment between two reports of one breaker; higher ones are clipped."""
SILENT = timedelta(seconds=30)
"""Silence after which every board has shown the instance as stale."""
_NOTHING = (0,) * len(COUNTERS)
_BULKHEAD = ("in_flight", "limit", "queued", "queue_limit", "rejected")

Document = Mapping[str, Any]


class BreakerRow(NamedTuple):
    """A breaker as a boot of an instance reported it at `changed_at`; rates are 0 to 1."""

    dependency: str
    instance: str
    boot: UUID
    state: str
    mode: str
    since: str | None
    failure_rate: float | None
    slow_rate: float | None
    calls: int
    changed_at: datetime


class TransitionRow(NamedTuple):
    """A transition of an instance's breaker, as received."""

    dependency: str
    boot: UUID
    n: int
    instance: str
    from_state: str
    to_state: str
    at: datetime
    cause: str
    received_at: datetime


class CounterIncrement(NamedTuple):
    """Increments of a breaker's counters, in the order of `COUNTERS`, between two moments."""

    dependency: str
    since: datetime
    until: datetime
    counts: tuple[int, ...]


@dataclass(slots=True)
class BreakerChanges:
    """The changes that reports bring.

    `states` has the latest state of each breaker of an instance; `begun` maps instances to their
    current boot, if it has just begun to report; `gone` has removed breakers, by dependency and
    instance.

    `moved` names dependencies whose board has changed, `stirred` those with changed rates only, and
    `lost`, filled when the changes are written, those that have lost a breaker.
    """

    states: dict[tuple[str, str], BreakerRow] = field(default_factory=dict)
    transitions: list[TransitionRow] = field(default_factory=list)
    growths: list[CounterIncrement] = field(default_factory=list)
    begun: dict[str, UUID] = field(default_factory=dict)
    gone: set[tuple[str, str]] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    stirred: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)

    def add(
        self, before: InstanceRow, after: InstanceRow, report: InstanceReport, at: datetime
    ) -> None:
        """Add the changes of a report received at `at`.

        `after` is the result of `report_merge.merge` on `before`. Transitions count in late and
        repeated reports too.
        """
        for step in report.steps:
            name, n, from_state, to_state, reached, cause = step
            self.transitions.append(
                TransitionRow(
                    dependency=name,
                    boot=report.boot,
                    n=n,
                    instance=report.id,
                    from_state=from_state,
                    to_state=to_state,
                    at=min(reached, at),  # A clock that is ahead must not stay the newest forever.
                    cause=cause,
                    received_at=at,
                )
            )
            self.moved.add(name)
        if (after.boot, after.seq) != (before.boot, before.seq):
            self._compare(before, after, report, at)

    def _compare(
        self, before: InstanceRow, after: InstanceRow, report: InstanceReport, at: datetime
    ) -> None:
        same = before.boot == report.boot
        known = breakers_in(before) if same else {}
        if not same:
            self.begun[after.id] = report.boot
        if before.reported_at is None or at - before.reported_at >= SILENT:
            self.moved.update(breakers_in(after))
        since = before.reported_at if same else boots.find_start(before, report, at)
        if same and not before.resilience:
            since = None  # Counted before breakers were stored.
        stands = breakers_in(after)
        for name in report.breakers or ():
            now, was = stands[name], known.get(name)
            self._grew(name, was, now, since, at)
            if was is None or _status(was) != _status(now):
                self.moved.add(name)
            elif _rates(was) != _rates(now):
                self.stirred.add(name)
            else:
                continue
            self.states[name, after.id] = _state(name, after.id, report.boot, now, at)
            self.gone.discard((name, after.id))
        for name, was in known.items():
            if is_present(was) and not is_present(stands.get(name, {})):
                self.gone.add((name, after.id))
                self.states.pop((name, after.id), None)

    def _grew(
        self, name: str, was: Document | None, now: Document, since: datetime | None, at: datetime
    ) -> None:
        """Add counter increments, or nothing if `since` is unknown."""
        counts = _grown({} if was is None else was["counters"], now["counters"])
        if since is not None and any(counts):
            self.growths.append(CounterIncrement(name, min(since, at), at, counts))


def breakers(elements: Iterable[Document]) -> dict[str, Document]:
    """Return the breakers of a parsed report, by dependency, in stored form."""
    return {each["dependency"]: _breaker(each) for each in elements}


def steps(elements: Iterable[Document]) -> list[ReportedTransition]:
    """Return the transitions of the breakers of a parsed report."""
    return [
        ReportedTransition(
            *(each["dependency"], one["n"], one["from"], one["to"], one["at"]),
            one.get("cause", ""),
        )
        for each in elements
        for one in each.get("transitions") or ()
    ]


def bulkheads(elements: Iterable[Document]) -> dict[str, Document]:
    """Return the bulkheads of a parsed report, by name, in stored form."""
    return {each["name"]: {key: each.get(key, 0) for key in _BULKHEAD} for each in elements}


def merge_document(before: Document, report: InstanceReport) -> Document:
    """Return the document after a report of the boot that reported `before`.

    A list is complete; a missing list leaves everything unchanged. The counters of removed breakers
    are kept.
    """
    breakers, bulkheads = before.get("breakers", {}), before.get("bulkheads", {})
    if report.breakers is not None:
        breakers = _present(breakers, report.breakers) | _former(breakers, report.breakers)
    if report.bulkheads is not None:
        bulkheads = dict(report.bulkheads)
    return {"breakers": breakers, "bulkheads": bulkheads}


def without(row: InstanceRow, names: Collection[str]) -> InstanceRow:
    """Return the row as if the breakers of `names` were gone.

    They could not be written, so the next report that has them must count as a change.
    """
    if not names:
        return row
    breakers = {
        name: _counters(said) if name in names else said for name, said in breakers_in(row).items()
    }
    return replace(row, resilience={**row.resilience, "breakers": breakers})


def is_present(said: Document) -> bool:
    """Return True for a breaker, False for the counters of a removed one."""
    return "state" in said


def breakers_in(row: InstanceRow) -> Mapping[str, Document]:
    """Return the breakers in a row, by dependency."""
    found: Mapping[str, Document] = row.resilience.get("breakers", {})
    return found


def _breaker(said: Document) -> Document:
    since = said.get("since")
    return {
        "state": said["state"],
        "mode": said.get("mode", "normal"),
        "since": None if since is None else timestamp(since),
        "failure_rate": said.get("failure_rate"),
        "slow_rate": said.get("slow_rate"),
        "calls": said.get("calls", 0),
        "counters": said.get("counters") or dict.fromkeys(COUNTERS, 0),
    }


def _present(before: Document, news: Document) -> dict[str, Document]:
    """Return the breakers of a report, with counters that never decrease.

    A counter that seems to have decreased was left out, and would be counted twice when it comes
    back.
    """
    result = dict(news)
    for name, said in news.items():
        if (was := before.get(name)) is not None and was["counters"] != said["counters"]:
            most = {
                each: max(n, was["counters"].get(each, 0)) for each, n in said["counters"].items()
            }
            result[name] = {**said, "counters": most}
    return result


def _former(before: Document, news: Document) -> dict[str, Document]:
    """Return the counters of removed breakers."""
    gone = [name for name in before if name not in news][:MAX_FORMER]
    return {name: _counters(before[name]) for name in gone}


def _counters(said: Document) -> Document:
    return {"counters": said["counters"]}


def _state(name: str, instance: str, boot: UUID, said: Document, at: datetime) -> BreakerRow:
    return BreakerRow(
        *(name, instance, boot, said["state"], said["mode"], said["since"]),
        *(said["failure_rate"], said["slow_rate"], said["calls"], at),
    )


def _status(said: Document) -> Sequence[object]:
    return said.get("state"), said.get("mode"), said.get("since")


def _rates(said: Document) -> Sequence[object]:
    """Return the rates rounded to hundredths, the precision of boards.

    Unrounded, they would change with every report.
    """
    rates = said["failure_rate"], said["slow_rate"]
    return [None if rate is None else round(rate, 2) for rate in rates]


def _grown(before: Document, now: Document) -> tuple[int, ...]:
    if now == before:
        return _NOTHING
    grown = (now[name] - before.get(name, 0) for name in COUNTERS)
    return tuple(min(max(0, number), MAX_GROWTH) for number in grown)
