"""Breakers and bulkheads in reports: their stored form, and changes between reports. Pure.

An instance's row stores the breakers of its current boot's last report. Each report is compared
with that row to find state changes, transitions and counter increments.
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
"""Most removed breakers whose counters are kept, in case they are reported again."""
MAX_GROWTH = 1_000_000_000
"""Largest plausible counter increment between two reports; larger ones are clipped."""
SILENT = timedelta(seconds=30)
"""Time without a report after which boards show an instance as stale."""
_NOTHING = (0,) * len(COUNTERS)
_BULKHEAD = ("in_flight", "limit", "queued", "queue_limit", "rejected")

Document = Mapping[str, Any]


class BreakerRow(NamedTuple):
    """The state of one instance's breaker since `changed_at`; rates are from 0 to 1."""

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
    """A state transition of an instance's breaker, as received."""

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
    """Increments of a breaker's counters between two moments, in the order of `COUNTERS`."""

    dependency: str
    since: datetime
    until: datetime
    counts: tuple[int, ...]


@dataclass(slots=True)
class BreakerChanges:
    """The breaker changes in a batch of reports.

    `states` has the latest state by dependency and instance. `new_boots` maps instances to the boot
    that reported for the first time. `removed` names breakers that are no longer reported, as
    (dependency, instance).

    `changed` names dependencies with a new state or mode, `rates_changed` dependencies with new
    rates only, and `reduced` (filled by the writer) dependencies that lost a breaker.
    """

    states: dict[tuple[str, str], BreakerRow] = field(default_factory=dict)
    transitions: list[TransitionRow] = field(default_factory=list)
    increments: list[CounterIncrement] = field(default_factory=list)
    new_boots: dict[str, UUID] = field(default_factory=dict)
    removed: set[tuple[str, str]] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    rates_changed: set[str] = field(default_factory=set)
    reduced: set[str] = field(default_factory=set)

    def add(
        self, before: InstanceRow, after: InstanceRow, report: InstanceReport, at: datetime
    ) -> None:
        """Add the changes between an instance's rows `before` and `after` a report.

        The report was received at `at`. Transitions are added from late and repeated reports too.
        """
        for step in report.steps:
            name, n, from_state, to_state, reached, cause = step
            reached = min(reached, at)  # Else a clock that is ahead would make it the newest.
            key = (name, report.boot, n, report.id)
            self.transitions.append(TransitionRow(*key, from_state, to_state, reached, cause, at))
            self.changed.add(name)
        if (after.boot, after.seq) != (before.boot, before.seq):
            self._compare(before, after, report, at)

    def _compare(
        self, before: InstanceRow, after: InstanceRow, report: InstanceReport, at: datetime
    ) -> None:
        same = before.boot == report.boot
        known = breakers_in(before) if same else {}
        if not same:
            self.new_boots[after.id] = report.boot
        is_back = before.reported_at is None or at - before.reported_at >= SILENT
        if is_back or report.is_final:
            self.changed.update(breakers_in(after))
        since = before.reported_at if same else boots.find_start(before, report, at)
        if same and not before.resilience:
            since = None  # Counted before breakers were stored.
        current = breakers_in(after)
        for name in report.breakers or ():
            now, was = current[name], known.get(name)
            counts = _count_increments({} if was is None else was["counters"], now["counters"])
            if since is not None and any(counts):
                self.increments.append(CounterIncrement(name, min(since, at), at, counts))
            if was is None or _status_key(was) != _status_key(now):
                self.changed.add(name)
            elif _round_rates(was) != _round_rates(now):
                self.rates_changed.add(name)
            else:
                continue
            self.states[name, after.id] = BreakerRow(
                *(name, after.id, report.boot, now["state"], now["mode"], now["since"]),
                *(now["failure_rate"], now["slow_rate"], now["calls"], at),
            )
            self.removed.discard((name, after.id))
        for name, was in known.items():
            if is_present(was) and not is_present(current.get(name, {})):
                self.removed.add((name, after.id))
                self.states.pop((name, after.id), None)


def list_breakers(elements: Iterable[Document]) -> dict[str, Document]:
    return {
        each["dependency"]: {
            "state": each["state"],
            "mode": each.get("mode", "normal"),
            "since": timestamp(each["since"]) if "since" in each else None,
            "failure_rate": each.get("failure_rate"),
            "slow_rate": each.get("slow_rate"),
            "calls": each.get("calls", 0),
            "counters": each.get("counters") or dict.fromkeys(COUNTERS, 0),
        }
        for each in elements
    }


def list_transitions(elements: Iterable[Document]) -> list[ReportedTransition]:
    return [
        ReportedTransition(
            *(each["dependency"], one["n"], one["from"], one["to"], one["at"]),
            one.get("cause", ""),
        )
        for each in elements
        for one in each.get("transitions") or ()
    ]


def list_bulkheads(elements: Iterable[Document]) -> dict[str, Document]:
    return {each["name"]: {key: each.get(key, 0) for key in _BULKHEAD} for each in elements}


def merge_document(before: Document, report: InstanceReport) -> Document:
    """Merge a report into the stored breakers and bulkheads of the same boot; return the result.

    A list in the report replaces the stored list, but counters of removed breakers are kept. If the
    report has no such list, the stored list stays.
    """
    breakers, bulkheads = before.get("breakers", {}), before.get("bulkheads", {})
    if report.breakers is not None:
        gone = [name for name in breakers if name not in report.breakers][:MAX_FORMER]
        removed = {name: {"counters": breakers[name]["counters"]} for name in gone}
        breakers = _keep_highest_counters(breakers, report.breakers) | removed
    if report.bulkheads is not None:
        bulkheads = dict(report.bulkheads)
    return {"breakers": breakers, "bulkheads": bulkheads}


def drop_breakers(row: InstanceRow, names: Collection[str]) -> InstanceRow:
    """Return an instance's row without the states of the breakers in `names`; their counters stay.

    Called if the states could not be written. Without a stored state, the next report of such a
    breaker counts as a change, so that the state is written then.
    """
    if not names:
        return row
    breakers = {
        name: {"counters": breaker["counters"]} if name in names else breaker
        for name, breaker in breakers_in(row).items()
    }
    return replace(row, resilience={**row.resilience, "breakers": breakers})


def is_present(breaker: Document) -> bool:
    """Return True if the breaker was in the last report; a removed one has only counters."""
    return "state" in breaker


def breakers_in(row: InstanceRow) -> Mapping[str, Document]:
    breakers: Mapping[str, Document] = row.resilience.get("breakers", {})
    return breakers


def _keep_highest_counters(before: Document, reported: Document) -> dict[str, Document]:
    """Return the reported breakers, with no counter below its stored value.

    A counter that a report omits is parsed as 0. Storing this lower value would count the
    difference twice once the counter is reported again.
    """
    result = dict(reported)
    for name, breaker in reported.items():
        if (was := before.get(name)) is not None and was["counters"] != breaker["counters"]:
            most = {
                each: max(n, was["counters"].get(each, 0))
                for each, n in breaker["counters"].items()
            }
            result[name] = {**breaker, "counters": most}
    return result


def _status_key(breaker: Document) -> Sequence[object]:
    return breaker.get("state"), breaker.get("mode"), breaker.get("since")


def _round_rates(breaker: Document) -> Sequence[object]:
    """Return the rates rounded to two decimals, as boards show them."""
    rates = breaker["failure_rate"], breaker["slow_rate"]
    return [None if rate is None else round(rate, 2) for rate in rates]


def _count_increments(before: Document, now: Document) -> tuple[int, ...]:
    if now == before:
        return _NOTHING
    grown = (now[name] - before.get(name, 0) for name in COUNTERS)
    return tuple(min(max(0, number), MAX_GROWTH) for number in grown)
