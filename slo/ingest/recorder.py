"""Taking in samples of cumulative counters: what they add to the minutes, whatever their order."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import transaction

from slo.arithmetic import increments
from slo.arithmetic.boots import PRESENCE_BOOT
from slo.arithmetic.increments import Increment
from slo.counters import writer

from . import deferred_updates, gate_events, series_store
from .deferred_updates import CounterUpdate
from .fast_path import FastPath
from .gate_events import SourceIncrement
from .sample_merger import SampleMerger
from .samples import Counted, Sample
from .series_store import Key, StoredSeries

__all__ = ["Counted", "Sample", "record_samples"]


@transaction.atomic(savepoint=False)
def record_samples(
    samples: Iterable[Sample],
    *,
    now: datetime,
    counted: Sequence[Counted] = (),
    at_once: bool = False,
    is_noted: bool = False,
) -> Counter[int]:
    """Add what is told to the counters of its SLIs; returns how many samples of each were news.

    How old they are is the caller's business. Others that add to the same SLIs wait. What moves
    very many rows follows soon after, unless it shall be added `at_once`. Gates are told of it,
    unless it `is_noted` for them already.
    """
    told: dict[Key, list[Sample]] = {}
    for sample in samples:
        told.setdefault(sample[:2], []).append(sample)
    locked = writer.lock_slis({sli for sli, _ in told} | {one.sli for one in counted})
    known = series_store.load_series(told.keys())
    work = CounterUpdate(locked)
    grown = _add_counted(counted, work, known)
    going_on, placing = FastPath(), SampleMerger(work, known)
    news: Counter[int] = Counter()
    for key, some in told.items():
        if key[0] not in locked:
            continue  # Removed since it was looked up.
        new = going_on.take(key, some, known.get(key, {}), work)
        if new is None:
            placing.take(key, some)
        else:
            news[key[0]] += new
    going_on.write(is_noted=is_noted)
    placing.finish()
    for (sli, _), new in placing.news.items():
        news[sli] += new
    deferred_updates.apply_update(work, at_once=at_once)
    if not is_noted:
        gate_events.record_gate_events([*grown, *placing.grown], locked)
    return news


def _add_counted(
    counted: Iterable[Counted], work: CounterUpdate, known: Mapping[Key, Mapping[str, StoredSeries]]
) -> list[SourceIncrement]:
    """Add what was counted otherwise. Of what came at one moment nobody knows since when it was
    counted, other than since the source spoke last: gates count it from then on."""
    grown: list[SourceIncrement] = []
    spoke: dict[Key, int] = {}
    for sli, source, began_at, ended_at, good, total in sorted(counted):
        if sli not in work.locked:
            continue
        ended = increments.to_micros(ended_at)
        began = min(increments.to_micros(began_at), ended)
        step = Increment(began, ended, increments.round_count(good), increments.round_count(total))
        work.grow(sli, step)
        work.cover(sli, (began, ended))
        if began == ended:
            key = sli, source
            there = known.get(key, {}).get(PRESENCE_BOOT)
            before = spoke.get(key, there.head.at if there else ended - increments.MINUTE)
            step = step._replace(began=min(before, ended))
            spoke[key] = ended
        grown.append(((sli, source), step))
    return grown
