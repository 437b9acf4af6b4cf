"""Proof of effect: which instances say that they apply the last change of a switch.

What counts is what an instance says it applies, never what was served to it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core.instances import queries
from controlplane.core.instances.models import Instance
from controlplane.core.instances.queries import HEARD_WITHIN, Change, Delays, Heard
from switches.models import Publication, Switch

STRAGGLERS_NAMED = 20
# Silent for longer than this, an instance is gone: nobody waits for it any more.
GONE_AFTER = timedelta(minutes=5)
# Delays are worked out per change and instance: that many in one go, the newest changes first.
DELAYS_AT_ONCE = 30_000
NOT_MEASURED = Delays(p50_ms=None, p99_ms=None, measured=0)


@dataclass(frozen=True)
class Straggler:
    """An instance that does not say it applies the change: what it says, and when it last spoke."""

    id: str
    says: str
    heard_at: datetime


@dataclass(frozen=True)
class Effect:
    """How far the change of `version` has got: applied by `applied` of `instances`.

    `stragglers` are at most 20 of the `stragglers_total`, those furthest behind first. Delays are
    milliseconds from the commit, over the `measured` instances that said they apply it.
    """

    version: int
    applied: int
    instances: int
    stragglers: tuple[Straggler, ...]
    p50_ms: int | None
    p99_ms: int | None
    measured: int
    requested_at: datetime | None
    committed_at: datetime | None

    @property
    def stragglers_total(self) -> int:
        return self.instances - self.applied

    @property
    def by_everybody(self) -> bool:
        """Whether there are instances, and all of them apply it."""
        return 0 < self.instances == self.applied


class Standings:
    """The instances that are there, in the order of what they apply: those furthest behind first.

    One counts as applying nothing if it said nothing, named another epoch, or claims a version
    that was not published yet.
    """

    def __init__(self, head: Publication, heard: Sequence[Heard]) -> None:
        self._head = head
        self._ordered = sorted(heard, key=lambda one: (self._applied(one), one.id))
        self._versions = [self._applied(one) for one in self._ordered]

    def effect(self, switch: Switch, delays: Delays) -> Effect:
        behind = bisect_left(self._versions, switch.version)
        return Effect(
            version=switch.version,
            applied=len(self._ordered) - behind,
            instances=len(self._ordered),
            stragglers=tuple(
                straggler(one, self._head) for one in self._ordered[: min(behind, STRAGGLERS_NAMED)]
            ),
            p50_ms=delays.p50_ms,
            p99_ms=delays.p99_ms,
            measured=delays.measured,
            requested_at=switch.requested_at,
            committed_at=switch.committed_at,
        )

    def _applied(self, one: Heard) -> int:
        return applied_version(one, self._head)


def applied_version(one: Heard, head: Publication) -> int:
    """The version of the present epoch that an instance applies; -1 for anything else."""
    if one.version is None or one.epoch != head.epoch or one.version > head.version:
        return -1
    return one.version


def straggler(one: Heard, head: Publication) -> Straggler:
    """What an instance that lags behind says, in words."""
    if one.version is None:
        says = "has not said what it applies"
    elif one.epoch != head.epoch:
        says = f"applies version {one.version} of another epoch"
    elif one.version > head.version:
        says = f"claims version {one.version}, which was never published"
    else:
        says = f"applies version {one.version}"
    return Straggler(one.id, says, one.heard_at)


def effects(switches: Sequence[Switch], now: datetime) -> dict[str, Effect]:
    """The effect of each switch's last published change, by id; three queries for any number.

    A switch that was never published (version 0) has none. Where changes times instances are too
    many, only the newest changes have their delays measured.
    """
    published = [switch for switch in switches if switch.version]
    if not published:
        return {}
    head = Publication.objects.get(pk=1)
    heard = queries.heard(now)
    standings = Standings(head, heard)
    delays = queries.delays(head.epoch, measurable(published, len(heard)))
    return {
        switch.pk: standings.effect(switch, delays.get(switch.pk, NOT_MEASURED))
        for switch in published
    }


def measurable(switches: Sequence[Switch], instances: int) -> list[Change]:
    """The changes to measure the delays of, the newest first."""
    changes = [
        Change(switch.pk, switch.version, switch.committed_at)
        for switch in switches
        if switch.committed_at is not None
    ]
    changes.sort(key=lambda change: change.version, reverse=True)
    return changes[: max(1, DELAYS_AT_ONCE // max(1, instances))]


def effect_of(switch: Switch, now: datetime) -> Effect | None:
    """The effect of one switch's last published change; None before there was one."""
    return effects([switch], now).get(switch.pk)


def fallen_silent(switch: Switch, now: datetime) -> tuple[list[Straggler], int]:
    """Instances that were there minutes ago and never said they apply the change: some, and all.

    They count no longer, and nobody knows whether they still run: worth a look before one
    believes that everybody applies it.
    """
    head = Publication.objects.get(pk=1)
    rows = (
        Instance.objects.filter(heard_at__lt=now - HEARD_WITHIN, heard_at__gte=now - GONE_AFTER)
        .exclude(
            applied_epoch=head.epoch,
            applied_version__gte=switch.version,
            applied_version__lte=head.version,
        )
        .order_by("-heard_at", "id")
        .values_list("id", "service", "applied_epoch", "applied_version", "heard_at")
    )
    silent = [
        straggler(Heard(name, service, epoch, version, at), head)
        for name, service, epoch, version, at in rows[: queries.MOST]
        if at is not None
    ]
    return silent[:STRAGGLERS_NAMED], len(silent)
