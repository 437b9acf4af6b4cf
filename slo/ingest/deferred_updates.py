"""Updates of minute counters; one that changes very many rows is left to a periodic task."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from controlplane.core.sql import fetch_all
from slo.arithmetic import increments
from slo.arithmetic.boots import MergeResult, MicrosSpan
from slo.arithmetic.increments import Increment, MinuteIncrements, covered_minutes, minute_of
from slo.counters import postgres_arrays, writer
from slo.counters.writer import LockedSli

NEAR_MINUTES = 15
"""An update is large if it begins more than this many minutes before the SLI's last row."""
MAX_ROWS = 100_000
"""Most rows that the large updates of a transaction may change; else they are deferred."""
MAX_SLIS = 20
MAX_MINUTES = 50_000
"""Most minute rows to update in a transaction of the tick, which locks their SLIs."""
_DEFER = """
    INSERT INTO slo_delayed (sli_id, began, ended, good, total, covers)
    SELECT late.* FROM json_to_recordset(%s::json)
         AS late (sli bigint, began bigint, ended bigint, good float8, total float8, covers bool)
"""
_DELETE = """
    DELETE FROM slo_delayed WHERE sli_id = ANY(%s)
    RETURNING sli_id, began, ended, good, total, covers
"""
_DUE = """
    SELECT d.sli_id, (max(d.ended) - min(d.began)) / 60000000
    FROM slo_delayed d GROUP BY d.sli_id ORDER BY min(d.id) LIMIT %s
"""


@dataclass
class _LargeUpdate:
    """An update that changes many minute rows of an SLI, because it begins far back.

    `increments_to_add` are pairs of an increment and 1, or -1 to remove it. The time spans `spans`
    become covered. `reach` is the number of minutes from the update's begin to the SLI's last row.
    """

    increments_to_add: list[tuple[Increment, int]] = field(default_factory=list)
    spans: list[MicrosSpan] = field(default_factory=list)
    reach: int = 0


class CounterUpdate:
    """Increments and covered time spans of locked SLIs, collected before they are written."""

    def __init__(self, locked: Mapping[int, LockedSli]) -> None:
        self.locked = locked
        self.minutes_by_sli: defaultdict[int, MinuteIncrements] = defaultdict(MinuteIncrements)
        self.large: defaultdict[int, _LargeUpdate] = defaultdict(_LargeUpdate)

    def extend(self, sli: int, step: Increment) -> None:
        """Add the increment between two samples at most `MAX_STEP` apart, and cover its time."""
        ended = minute_of(step.ended)
        last = self.locked[sli].last
        if last is not None and last - ended > NEAR_MINUTES:
            large = self._large(sli, step.began, step.ended)
            large.increments_to_add.append((step, 1))
            large.spans.append((step.began, step.ended))
            return
        minutes = self.minutes_by_sli[sli]
        minutes.add_counts(ended, step.good, step.total)
        minutes.covered.update(covered_minutes(step.began, step.ended))

    def add(self, sli: int, merged: MergeResult) -> None:
        """Add the changes from merging new samples; every minute with a new sample gets a row."""
        for sign, some in ((1, merged.added), (-1, merged.removed)):
            for step in some:
                if step.total:
                    self.add_increment(sli, step, sign)
        for span in merged.spans:
            self.cover(sli, span)
        for samples in merged.new.values():
            for sample in samples:
                self.add_increment(sli, Increment(sample.at, sample.at, 0.0, 0.0))

    def add_increment(self, sli: int, step: Increment, sign: int = 1) -> None:
        if self._is_near(sli, step.began):
            self.minutes_by_sli[sli].add((step,), sign)
        else:
            self._large(sli, step.began, step.ended).increments_to_add.append((step, sign))

    def cover(self, sli: int, span: MicrosSpan) -> None:
        if self._is_near(sli, span[0]):
            self.minutes_by_sli[sli].cover((span,))
        else:
            self._large(sli, *span).spans.append(span)

    def split(self, *, at_once: bool) -> list[dict[str, Any]]:
        """Split off the large updates to defer: return them as rows of :class:`DeferredUpdate`.

        If they change at most `MAX_ROWS` rows in total, or if `at_once`, they join the updates to
        write now instead, and the result is empty.
        """
        if not at_once and sum(large.reach for large in self.large.values()) > MAX_ROWS:
            return [row for sli, large in self.large.items() for row in _deferred_rows(sli, large)]
        for sli, large in self.large.items():
            minutes = self.minutes_by_sli[sli]
            for step, sign in large.increments_to_add:
                minutes.add((step,), sign)
            minutes.cover(large.spans)
        return []

    def _is_near(self, sli: int, began: int) -> bool:
        last = self.locked[sli].last
        return last is not None and last - minute_of(began) <= NEAR_MINUTES

    def _large(self, sli: int, began: int, ended: int) -> _LargeUpdate:
        large = self.large[sli]
        newest = max(self.locked[sli].last or 0, minute_of(ended))
        large.reach = max(large.reach, newest - minute_of(began))
        return large


def apply_update(work: CounterUpdate, *, at_once: bool = False) -> None:
    """Write an update of locked SLIs; unless `at_once`, very large parts may be deferred."""
    deferred = work.split(at_once=at_once)
    if work.minutes_by_sli:
        writer.add_increments(work.locked, work.minutes_by_sli)
    postgres_arrays.execute_rows(_DEFER, deferred)


def apply_deferred(*, most: int) -> int:
    """Apply deferred updates until about `most` minute rows are changed; return how many are."""
    done = 0
    while done < most and (applied := _apply_batch()):
        done += applied
    return done


@transaction.atomic
def _apply_batch() -> int:
    slis = _due_slis()
    if not slis:
        return 0
    locked = writer.lock_slis(slis)
    rows = fetch_all(_DELETE, [slis])
    minutes_by_sli: dict[int, MinuteIncrements] = defaultdict(MinuteIncrements)
    for sli, began, ended, good, total, covers in rows:
        if covers:
            minutes_by_sli[sli].cover(((began, ended),))
            continue
        sign = -1 if good < 0 or total < 0 else 1
        step = Increment(began, ended, sign * good, sign * total)
        minutes_by_sli[sli].add((step,), sign)
    writer.add_increments(locked, minutes_by_sli)
    return sum(len(minutes.minutes()) for minutes in minutes_by_sli.values()) or len(rows)


def _due_slis() -> list[int]:
    """Return the ids of SLIs to update in one transaction, those with the oldest updates first."""
    slis: list[int] = []
    minutes_left = MAX_MINUTES
    for sli, minutes in fetch_all(_DUE, [MAX_SLIS]):
        minutes_left -= min(minutes, increments.MAX_MINUTES)
        if minutes_left < 0 and slis:
            break
        slis.append(sli)
    return slis


def _deferred_rows(sli: int, large: _LargeUpdate) -> Iterable[dict[str, Any]]:
    for step, sign in large.increments_to_add:
        counts = {"good": sign * step.good, "total": sign * step.total}
        yield {"sli": sli, "began": step.began, "ended": step.ended, **counts, "covers": False}
    for began, ended in large.spans:
        yield {"sli": sli, "began": began, "ended": ended, "good": 0, "total": 0, "covers": True}
