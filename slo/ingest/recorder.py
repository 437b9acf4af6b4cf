"""Recording of counter samples in the minute counters of SLIs, whatever order they arrive in."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import transaction

from controlplane.core.gates import event_counts
from slo.arithmetic import increments
from slo.arithmetic.boots import PRESENCE_BOOT
from slo.arithmetic.increments import Increment
from slo.counters import writer

from . import deferred_updates, series_store
from .deferred_updates import CounterUpdate
from .fast_path import FastPath
from .sample_merger import SampleMerger
from .samples import CountedEvents, SampleBatch, SourceIncrement, SourceKey
from .series_store import StoredSeries


@transaction.atomic(savepoint=False)
def record_samples(
    batch: SampleBatch,
    *,
    now: datetime,
    counted: Sequence[CountedEvents] = (),
    at_once: bool = False,
    is_noted: bool = False,
) -> Counter[int]:
    """Add samples and counted events to the counters of their SLIs.

    Return the number of new samples by SLI id. SLIs are locked until the transaction ends. Samples
    may be of any age. Unless `at_once`, an update that changes very many rows is left to a periodic
    task. Events are also recorded for ramp gates, unless the caller has done so (`is_noted`).
    """
    locked = writer.lock_slis({sli for sli, _ in batch.by_source} | {one.sli for one in counted})
    stored = series_store.load_series(batch.by_source.keys())
    update = CounterUpdate(locked)
    gate_increments = _add_counted(counted, update, stored)
    fast_path, merger = FastPath(), SampleMerger(update, stored, batch.started)
    new: Counter[int] = Counter()
    for key, boots in batch.by_source.items():
        if key[0] not in locked:
            continue  # Its SLO was deleted after the look-up.
        started = batch.started.get(key, {})
        appended = fast_path.try_append(key, boots, started, stored.get(key, {}), update)
        if appended is None:
            merger.add(key, boots)
        else:
            new[key[0]] += appended
    fast_path.write(is_noted=is_noted)
    merger.finish()
    for (sli, _), count in merger.new_counts.items():
        new[sli] += count
    deferred_updates.apply_update(update, at_once=at_once)
    if not is_noted:
        event_counts.record(
            [
                {
                    "slo": name,
                    "instance": source,
                    "began": step.began,
                    "ended": step.ended,
                    "good": int(step.good),
                    "total": int(step.total),
                }
                for (sli, source), step in (*gate_increments, *merger.gate_increments)
                if (name := locked[sli].slo) and step.total >= 1
            ]
        )
    return new


def _add_counted(
    counted: Iterable[CountedEvents],
    update: CounterUpdate,
    stored: Mapping[SourceKey, Mapping[str, StoredSeries]],
) -> list[SourceIncrement]:
    """Add counted events to `update`; return them as increments to record for ramp gates."""
    gate_increments: list[SourceIncrement] = []
    last_reported: dict[SourceKey, int] = {}
    for sli, source, began_at, ended_at, good, total in sorted(counted):
        if sli not in update.locked:
            continue
        ended = increments.to_micros(ended_at)
        began = min(increments.to_micros(began_at), ended)
        step = Increment(began, ended, increments.round_count(good), increments.round_count(total))
        update.add_increment(sli, step)
        update.cover(sli, (began, ended))
        if began == ended:  # Without a start time, begin at the previous report.
            key = sli, source
            presence = stored.get(key, {}).get(PRESENCE_BOOT)
            before = presence.head.at if presence else ended - increments.MINUTE
            step = step._replace(began=min(last_reported.get(key, before), ended))
            last_reported[key] = ended
        gate_increments.append(((sli, source), step))
    return gate_increments
