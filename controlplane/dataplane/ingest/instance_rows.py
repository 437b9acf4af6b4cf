"""Data classes for a validated report, its SLO events, and a stored instance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from controlplane.core.instances import rates

SloCounts = Mapping[str, Sequence[int]]
"""SLO → (good, total), cumulative since the boot."""


class SloEvents(NamedTuple):
    """SLO events that an instance counted from `began_at` to `ended_at`; `total` is at least 1.

    `services` are the services that the token is limited to; empty if it is not limited.
    """

    slo: str
    instance: str
    began_at: datetime
    ended_at: datetime
    good: int
    total: int
    services: Sequence[str] = ()


class ReportedTransition(NamedTuple):
    """A breaker's transition in a report: its `n`th since the boot of the instance."""

    dependency: str
    n: int
    from_state: str
    to_state: str
    at: datetime
    cause: str


@dataclass(frozen=True, slots=True)
class InstanceReport:
    """A validated report of an instance.

    `applied_orders` are the ids of the emergency orders that the instance applies, None if it does
    not say so. `checks` maps switch ids to (allowed, blocked), and `sli` SLOs to (good, total).
    `breakers` and `bulkheads` are in stored form, by dependency and by name; None if the report has
    no such list. `steps` are breaker transitions, and `dropped` is the number of transitions above
    the limit.
    `is_final` is True for the final report of a process that stops. `document` is the report as it
    was sent.
    """

    service: str
    instance: str
    boot: UUID
    seq: int
    started_at: datetime | None = None
    sent_at: datetime | None = None
    applied_version: int | None = None
    applied_orders: tuple[str, ...] | None = None
    config_version: int | None = None
    checks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sli: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    breakers: Mapping[str, Mapping[str, Any]] | None = None
    bulkheads: Mapping[str, Mapping[str, Any]] | None = None
    steps: Sequence[ReportedTransition] = ()
    dropped: int = 0
    is_final: bool = False
    document: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def id(self) -> str:
        return f"{self.service}/{self.instance}"

    @property
    def size(self) -> int:
        """The cost of parsing and merging the report; the counts of one switch cost 1."""
        of_breakers = 2 * len(self.breakers or ()) + len(self.steps)
        return len(self.checks) + len(self.sli) + of_breakers + len(self.bulkheads or ())


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance as stored; `core.Instance` documents the columns.

    `reported` is `{"checks": {switch: [allowed, blocked]}, "sli": {slo: [good, total]}, "seqs":
    bits, "boots": {boot: [seq, time, sli]}, "tokens": [[id, time]]}`. Bit n of `seqs` is set if the
    report `seq - n` was received; `boots` are the latest former boots, and `tokens` the tokens that
    reported last.
    """

    id: str
    service: str
    boot: UUID | None = None
    started_at: datetime | None = None
    seq: int | None = None
    reported_at: datetime | None = None
    heard_at: datetime | None = None
    applied_epoch: UUID | None = None
    applied_version: int | None = None
    applied_at: datetime | None = None
    config_version: int | None = None
    contested_at: datetime | None = None
    stopped_at: datetime | None = None
    relay: str = ""
    reported: Mapping[str, Any] = field(default_factory=dict)
    checks: Mapping[str, rates.Entry] = field(default_factory=dict)
    resilience: Mapping[str, Any] = field(default_factory=dict)
