"""Effect of published changes: the instances that report applying a switch's last change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from controlplane.core.instances import queries
from controlplane.core.instances.queries import (
    CheckingInstances,
    Delays,
    Head,
    InstanceStatus,
    PublishedChange,
    VersionCounts,
)
from switches.evaluate import lapses_at
from switches.models import Publication, Switch

MAX_NAMED_STRAGGLERS = 20
# Changes times instances whose delays are measured, newest changes first.
MAX_DELAYS_AT_ONCE = 30_000
NOT_MEASURED = Delays(p50_ms=None, p99_ms=None, measured=0, stopped=0)


@dataclass(frozen=True)
class Straggler:
    """An instance that hasn't acknowledged a switch's change; `says` describes its last report."""

    id: str
    says: str
    heard_at: datetime


@dataclass(frozen=True)
class SwitchEffect:
    """The rollout of a switch's last change, published with the snapshot version `version`.

    `instances` counts the reporting instances; `applied` of them apply the change. `stragglers`
    lists up to 20 of the others, the furthest behind first. `silent_total` counts instances that
    last reported 30 s to 5 minutes ago, without acknowledging the change. Instances that stopped
    cleanly are not counted. `p50_ms` and `p99_ms` are delays after the commit, over `measured`
    acknowledgments; `measured_stopped` of their instances have stopped cleanly since.
    `past_expiry` is True if clients have ended the engagement by its expiry policy.
    """

    version: int
    applied: int
    instances: int
    stragglers: tuple[Straggler, ...]
    silent_total: int
    p50_ms: int | None
    p99_ms: int | None
    measured: int
    measured_stopped: int
    requested_at: datetime | None
    committed_at: datetime | None
    past_expiry: bool

    @property
    def stragglers_total(self) -> int:
        return self.instances - self.applied

    @property
    def by_everybody(self) -> bool:
        return 0 < self.instances == self.applied

    @property
    def whole(self) -> bool:
        return self.by_everybody and not self.silent_total

    @property
    def reach(self) -> str:
        """Return how far the change has got, for scripts and styles."""
        if not self.instances:
            return "unknown"
        if self.whole and not self.past_expiry:
            return "everybody"
        if self.by_everybody:
            return "all-heard-from"
        return "some" if self.applied else "nobody"

    @property
    def heading(self) -> str:
        """Return how many instances apply the change, as text."""
        if not self.instances:
            return "Committed; effect unknown"
        if self.by_everybody:
            instances = (
                f"all {self.instances:,} reporting instances"
                if self.instances > 1
                else "the only reporting instance"
            )
            silent = f"; {self.silent_total:,} stopped reporting" if self.silent_total else ""
            expired = "; past its expiry" if self.past_expiry else ""
            return f"Applied by {instances}{silent}{expired}"
        counts = f"{self.applied:,} of {self.instances:,} instance{'s'[: self.instances > 1]}"
        return f"Applied by {counts}" if self.applied else f"Committed. Applied by {counts}"


def describe_checking(instances: int, checking: CheckingInstances) -> str:
    """Return sentences on which of the reporting `instances` checked a switch in the last hour.

    `checking` counts the callers in the last hour; without any, the text is empty.
    """
    sentences = []
    if checking.reporting:
        who = (
            "All of them" if checking.reporting == instances else f"{checking.reporting:,} of them"
        )
        who = "The instance" if instances == 1 else who
        sentences.append(f"{who} checked this switch in the last hour.")
    elif instances and checking.total:
        which = "The instance reported no" if instances == 1 else "None of them reported"
        sentences.append(f"{which} checks of this switch in the last hour.")
    if checking.stopped:
        plural = "s"[: checking.stopped > 1]
        who = f"other{plural} that checked it"
        if not sentences:
            who = f"instance{plural} that checked this switch in the last hour"
        verb = "have" if plural else "has"
        sentences.append(f"{checking.stopped:,} {who} {verb} stopped.")
    return " ".join(sentences)


class Published(Protocol):
    """A switch, as a model or a list row, whose last change's effect is to be measured."""

    @property
    def pk(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def committed_at(self) -> datetime | None: ...


@dataclass(frozen=True)
class FleetReports:
    """The reports of all instances, from which the effects of several switches are measured.

    `present` counts the reporting instances by the snapshot version they apply, and `silent` those
    that last reported 30 s to 5 minutes ago. `lagging` lists the instances furthest behind.
    `delays` are the delays in applying each switch's last change, by switch id.
    """

    present: VersionCounts
    silent: VersionCounts
    lagging: Sequence[InstanceStatus]
    delays: Mapping[str, Delays]


def measure_fleet(
    published: Sequence[Published],
    now: datetime,
    head: Head,
    began_version: int,
    present: VersionCounts,
    silent: VersionCounts,
) -> FleetReports:
    """Return the instance reports about the last changes of these switches.

    `head` is the published version, and `began_version` the first version of its epoch. `present`
    and `silent` are those of :class:`FleetReports`.
    """
    newest = max(switch.version for switch in published)
    lagging: Sequence[InstanceStatus] = ()
    if present.below(newest):
        # Ordered by version, so those behind an older change come first.
        lagging = queries.list_lagging_instances(newest, head, now, most=MAX_NAMED_STRAGGLERS)
    changes = select_measurable(published, present.total, began_version)
    return FleetReports(present, silent, lagging, queries.load_delays(head.epoch, changes))


def select_measurable(
    switches: Sequence[Published], instances: int, began_version: int
) -> list[PublishedChange]:
    """Return the newest changes whose delays can be measured in one query.

    The more `instances` there are, the fewer changes are returned. Changes before `began_version`,
    the first version of this epoch, are left out: no report of this epoch acknowledges them.
    """
    changes = [
        PublishedChange(switch.pk, switch.version, switch.committed_at)
        for switch in switches
        if switch.committed_at is not None and switch.version >= began_version
    ]
    changes.sort(key=lambda change: change.version, reverse=True)
    return changes[: max(1, MAX_DELAYS_AT_ONCE // max(1, instances))]


def measure_effect(switch: Switch, now: datetime) -> SwitchEffect | None:
    """Return the effect of a switch's last published change, or None if it was never published."""
    if not switch.version:
        return None
    row = Publication.objects.get(pk=1)
    head = Head(row.epoch, row.version)
    counts = queries.count_versions(head, now)
    fleet = measure_fleet([switch], now, head, row.began_version, *counts)
    behind = fleet.present.below(switch.version)
    delays = fleet.delays.get(switch.pk, NOT_MEASURED)
    lapses = lapses_at(switch.episode) if switch.episode else None
    return SwitchEffect(
        version=switch.version,
        applied=fleet.present.total - behind,
        instances=fleet.present.total,
        stragglers=_to_stragglers(fleet.lagging, head),
        silent_total=fleet.silent.below(switch.version),
        p50_ms=delays.p50_ms,
        p99_ms=delays.p99_ms,
        measured=delays.measured,
        measured_stopped=delays.stopped,
        requested_at=switch.requested_at,
        committed_at=switch.committed_at,
        past_expiry=lapses is not None and lapses <= now,
    )


def find_silent_instances(switch: Switch, now: datetime) -> tuple[Straggler, ...]:
    """Return up to 20 instances that went silent before applying the last change, latest first."""
    row = Publication.objects.get(pk=1)
    head = Head(row.epoch, row.version)
    found = queries.list_silent_instances(switch.version, head, now, most=MAX_NAMED_STRAGGLERS)
    return _to_stragglers(found, head)


def _to_stragglers(found: Sequence[InstanceStatus], head: Head) -> tuple[Straggler, ...]:
    return tuple(
        Straggler(report.id, _describe_report(report, head), report.heard_at) for report in found
    )


def _describe_report(report: InstanceStatus, head: Head) -> str:
    said = _describe_version(report, head)
    return f"{said}, through relay {report.relay}" if report.relay else said


def _describe_version(report: InstanceStatus, head: Head) -> str:
    if report.version is None:
        return "has not reported a version"
    if report.epoch != head.epoch:
        return f"applies version {report.version} of another epoch"
    if report.version > head.version:
        return f"reports version {report.version}, which was never published"
    return f"applies version {report.version}"
