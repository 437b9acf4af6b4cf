"""A report as it is read, and the row of an instance that it is merged into. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from controlplane.core.instances import rates


class Step(NamedTuple):
    """A breaker of `dependency` went from one state to another: the `n`th time in its boot."""

    dependency: str
    n: int
    from_state: str
    to_state: str
    at: datetime
    cause: str


@dataclass(frozen=True, slots=True)
class Report:
    """One report that has the right shape.

    `checks`: switch id → (allowed, blocked); `sli`: SLO → (good, total); `breakers` and `bulkheads`
    as they are kept, by dependency and by name, None if it had no such list; `steps` of breakers
    from state to state. `dropped` are those that it had besides.
    """

    service: str
    instance: str
    boot: UUID
    seq: int
    started_at: datetime | None = None
    sent_at: datetime | None = None
    applied_version: int | None = None
    config_version: int | None = None
    checks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    sli: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    breakers: Mapping[str, Mapping[str, Any]] | None = None
    bulkheads: Mapping[str, Mapping[str, Any]] | None = None
    steps: Sequence[Step] = ()
    dropped: int = 0

    @property
    def id(self) -> str:
        """`service/instance`."""
        return f"{self.service}/{self.instance}"

    @property
    def size(self) -> int:
        """What it costs to read and merge, as a number of checks."""
        of_breakers = 2 * len(self.breakers or ()) + len(self.steps)
        return len(self.checks) + len(self.sli) + of_breakers + len(self.bulkheads or ())


@dataclass(frozen=True, slots=True)
class Row:
    """An instance as it is stored; `core.Instance` says what each field means.

    `reported` is `{"checks": {switch: [allowed, blocked]}, "sli": {slo: [good, total]}, "seqs":
    bits, "boots": {boot: [seq, time, sli]}, "tokens": [[id, time]]}`; bit n of `seqs` is set if
    the report `seq - n` has been taken in, `boots` are the last few former ones, and `tokens` those
    that reported last. A boot that was there before SLIs were kept has no `sli` until its next
    report.
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
    reported: Mapping[str, Any] = field(default_factory=dict)
    checks: Mapping[str, rates.Entry] = field(default_factory=dict)
    resilience: Mapping[str, Any] = field(default_factory=dict)
