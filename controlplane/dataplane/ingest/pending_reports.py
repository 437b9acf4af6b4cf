"""Queue of reports that wait to be written, with futures for their requests. Memory only."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from controlplane.core.errors import Unavailable

from .instance_rows import InstanceReport

MAX_REPORTS = 5000
MAX_WEIGHT = 100_000
"""Largest total weight of pending reports: as much as is written in about 5 s."""
WEIGHT_AT_ONCE = 2000
"""Largest weight of one transaction: as much as is written in well under a second."""
ROW_WEIGHT = 20
"""Weight of an instance's row, in units of one switch's check counts."""


@dataclass(slots=True)
class PendingReport:
    """A report received at `at`, with a future for the request that waits for the write.

    The snapshot version in the report belongs to `epoch`. `services` are those that the token is
    limited to; empty if it is not limited. `relay` is the name of the relay that received the
    report, "" for this data plane.
    """

    report: InstanceReport
    epoch: UUID | None
    at: datetime
    token_id: int = 0
    services: Sequence[str] = ()
    relay: str = ""
    duplicate: asyncio.Future[bool] = field(default_factory=asyncio.Future)

    @property
    def weight(self) -> int:
        return ROW_WEIGHT + self.report.size

    def resolve(self, duplicate: bool) -> None:
        if not self.duplicate.done():
            self.duplicate.set_result(duplicate)

    def refuse(self, error: Unavailable | None = None) -> None:
        if not self.duplicate.done():
            self.duplicate.set_exception(error or make_unavailable())


class UnstorableReport(Unavailable):
    """Raised for a report that the database refuses, now and later."""


class PendingReports:
    """The pending reports of one process, in order of arrival."""

    def __init__(self) -> None:
        self._reports: deque[PendingReport] = deque()
        self._weight = 0
        self._one_by_one = 0

    def __len__(self) -> int:
        return len(self._reports)

    def has_room(self, one: PendingReport) -> bool:
        return len(self) < MAX_REPORTS and self._weight + one.weight <= MAX_WEIGHT

    def add(self, one: PendingReport) -> None:
        self._reports.append(one)
        self._weight += one.weight

    def take_batch(self) -> list[PendingReport]:
        """Return the next reports for one transaction; skip reports whose requests timed out."""
        few: list[PendingReport] = []
        weight, most = 0, 1 if self._one_by_one else WEIGHT_AT_ONCE
        while self._reports and (not few or weight + self._reports[0].weight <= most):
            one = self._reports.popleft()
            self._weight -= one.weight
            self._one_by_one = max(0, self._one_by_one - 1)
            if not one.duplicate.done():
                few.append(one)
                weight += one.weight
        return few

    def put_back(self, few: Sequence[PendingReport], *, one_by_one: bool = False) -> None:
        """Put a batch back at the front; with `one_by_one`, each of its reports becomes a batch."""
        self._reports.extendleft(reversed(few))
        self._weight += sum(one.weight for one in few)
        if one_by_one:
            self._one_by_one = len(few)

    def refuse_all(self) -> None:
        for one in self._reports:
            one.refuse()
        self._reports.clear()
        self._weight = self._one_by_one = 0


def make_unavailable() -> Unavailable:
    return Unavailable(
        "The report could not be stored, because the database is not responding or is read-only."
        " Send it again with the same seq."
    )
