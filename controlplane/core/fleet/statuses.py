"""States of data planes and relays, assessed from the reports of their processes. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

SILENT, EMPTY, LAGGING, STARTING, CURRENT = "silent", "empty", "lagging", "starting", "current"
STATES = (SILENT, EMPTY, LAGGING, STARTING, CURRENT)
"""All states, most urgent first."""
IMPAIRED = (SILENT, EMPTY, LAGGING)
"""States in which a change may reach services late, or not at all."""

SILENT_AFTER = timedelta(seconds=30)
"""Time after the last report of all its processes; each reports every 5 seconds."""
LATE = timedelta(seconds=10)
"""Age of a snapshot, and time since a version was published, that a working connection explains."""
START_PERIOD = timedelta(seconds=30)
"""Time in which a new process may have no snapshot or an old one."""


@dataclass(frozen=True)
class ProcessReport:
    """The last report of one process; the fields are those of :class:`.models.DataPlane`."""

    name: str
    upstream: str
    is_relay: bool
    release: str
    epoch: UUID | None
    version: int | None
    age_seconds: float | None
    held: int
    instances: int
    started_at: datetime
    heard_at: datetime


@dataclass(frozen=True)
class PublishedHead:
    """The version that the console published last, and when."""

    epoch: UUID
    version: int
    published_at: datetime


@dataclass(frozen=True)
class FleetMember:
    """A data plane or relay: the processes of one name.

    The figures are those of the processes heard in the last 30 s: the lowest version, the greatest
    age and the sums. A silent member has those of the last report of the process heard last.
    `follows_silent` names an upstream that is silent, too, so that its relays can't be heard.
    """

    name: str
    is_relay: bool
    state: str
    upstreams: tuple[str, ...]
    releases: tuple[str, ...]
    epoch: UUID | None
    version: int | None
    age_seconds: float | None
    held: int
    instances: int
    processes: int
    heard_at: datetime
    follows_silent: str = ""

    @property
    def kind(self) -> str:
        return "relay" if self.is_relay else "data plane"

    @property
    def is_silent(self) -> bool:
        return self.state == SILENT

    @property
    def is_impaired(self) -> bool:
        return self.state in IMPAIRED

    def measure_lag(self, now: datetime) -> timedelta | None:
        """Return the time since its snapshot was last known to be current; None without one."""
        if self.age_seconds is None:
            return None
        return now - self.heard_at + timedelta(seconds=self.age_seconds)


def assess_fleet(
    reports: Iterable[ProcessReport], head: PublishedHead, now: datetime
) -> list[FleetMember]:
    """Return the members of the fleet: most urgent first, then data planes before relays, by name.

    A silent process doesn't count while another one of its name is heard: it was replaced.
    """
    by_name: dict[str, list[ProcessReport]] = defaultdict(list)
    for report in reports:
        by_name[report.name].append(report)
    silent = {name for name, found in by_name.items() if not _select_heard(found, now)}
    members = [_assess_member(found, silent, head, now) for found in by_name.values()]
    members.sort(key=lambda member: (STATES.index(member.state), member.is_relay, member.name))
    return members


def _select_heard(reports: Sequence[ProcessReport], now: datetime) -> list[ProcessReport]:
    return [report for report in reports if now - report.heard_at <= SILENT_AFTER]


def _assess_member(
    reports: Sequence[ProcessReport], silent: set[str], head: PublishedHead, now: datetime
) -> FleetMember:
    last = max(reports, key=lambda report: report.heard_at)
    counted = _select_heard(reports, now) or [last]
    upstreams = tuple(sorted({report.upstream for report in counted if report.upstream}))
    states = [_assess_process(report, head, now) for report in counted]
    ages = [report.age_seconds for report in counted if report.age_seconds is not None]
    lowest = min(counted, key=lambda report: _rank_version(report, head))
    is_silent = last.name in silent
    return FleetMember(
        name=last.name,
        is_relay=last.is_relay,
        state=SILENT if is_silent else min(states, key=STATES.index),
        upstreams=upstreams,
        releases=tuple(sorted({report.release for report in counted if report.release})),
        epoch=lowest.epoch,
        version=lowest.version,
        age_seconds=max(ages, default=None),
        held=sum(report.held for report in counted),
        instances=sum(report.instances for report in counted),
        processes=len(counted),
        heard_at=last.heard_at,
        follows_silent=next((name for name in upstreams if is_silent and name in silent), ""),
    )


def _rank_version(report: ProcessReport, head: PublishedHead) -> tuple[bool, int]:
    version = -1 if report.version is None else report.version
    return report.epoch == head.epoch, version


def _assess_process(report: ProcessReport, head: PublishedHead, now: datetime) -> str:
    if report.version is None:
        state = EMPTY
    elif _is_old(report) or _is_behind(report, head):
        state = LAGGING
    else:
        return CURRENT
    return STARTING if now - report.started_at <= START_PERIOD else state


def _is_old(report: ProcessReport) -> bool:
    return report.age_seconds is not None and report.age_seconds > LATE.total_seconds()


def _is_behind(report: ProcessReport, head: PublishedHead) -> bool:
    """Return True if the report lacks a version that was published more than 10 s before it."""
    lacks = report.epoch != head.epoch or (report.version or 0) < head.version
    return lacks and report.heard_at - head.published_at > LATE
