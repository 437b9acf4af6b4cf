"""Fast path for samples that follow the last one of their source: one statement writes them."""

from collections.abc import Mapping, Sequence

from controlplane.core.gates import event_counts
from controlplane.core.sql import execute
from slo.arithmetic.increments import MAX_STEP, Increment, Sample, increment_between, minute_of
from slo.counters import postgres_arrays

from .deferred_updates import CounterUpdate
from .samples import SourceKey
from .series_store import MERGE_SAMPLES, StoredSeries

_WRITE = f"""
    WITH new AS MATERIALIZED (
        SELECT * FROM unnest(%(series)s::bigint[], %(minute)s::int[], %(at)s::bigint[],
                             %(good)s::float8[], %(total)s::float8[], %(began)s::bigint[],
                             %(more_good)s::float8[], %(more)s::float8[])
             AS new (series, minute, at, good, total, began, more_good, more)
    ), updated AS (
        UPDATE slo_series s
        SET at = to_timestamp(new.at::float8 / 1000000), good = new.good, total = new.total
        FROM new WHERE s.id = new.series
        RETURNING s.sli_id, s.source, new.began, new.at, new.more_good, new.more
    ), counted AS (
        {event_counts.INSERT}
        SELECT o.name, updated.source, to_timestamp(updated.began::float8 / 1000000),
               to_timestamp(updated.at::float8 / 1000000), floor(updated.more_good),
               floor(updated.more)
        FROM updated JOIN slo_sli i ON i.id = updated.sli_id JOIN slo_slo o ON o.id = i.slo_id
        WHERE updated.more >= 1 AND NOT %(is_noted)s
    )
    INSERT INTO slo_sample AS s (series_id, minute, at, good, total)
    SELECT series, minute, ARRAY[at], ARRAY[good], ARRAY[total] FROM new
    {MERGE_SAMPLES}
"""  # noqa: S608


class FastPath:
    """Samples that one statement can write: each soon follows the last one of its series."""

    def __init__(self) -> None:
        self._series: list[int] = []
        self._samples: list[Sample] = []
        self._increments: list[Increment] = []

    def try_append(
        self,
        key: SourceKey,
        boots: Mapping[str, Sequence[Sample]],
        started: Mapping[str, int],
        stored: Mapping[str, StoredSeries],
        update: CounterUpdate,
    ) -> int | None:
        """Queue a source's only new sample for :meth:`write`, if it soon follows the last one.

        Return 1 if it is new, 0 if it is stored already, None if the fast path can't take it.
        """
        if len(boots) != 1 or len(stored) != 1:
            return None
        ((boot, samples),) = boots.items()
        series = stored.get(boot)
        if series is None or len(samples) != 1:
            return None
        if started and series.begins_later_than(started[boot]):
            return None
        sample = samples[0]
        head = series.head
        if sample == head:
            return 0
        if not head.at < sample.at <= head.at + MAX_STEP:
            return None
        step = increment_between(head, sample)
        update.extend(key[0], step)
        self._series.append(series.id)
        self._samples.append(sample)
        self._increments.append(step)
        return 1

    def write(self, *, is_noted: bool) -> None:
        """Save the queued samples.

        Their events are also recorded for ramp gates, unless the caller has done so (`is_noted`).
        """
        if not self._series:
            return
        at, good, total = zip(*self._samples, strict=True)
        began, _, more_good, more = zip(*self._increments, strict=True)
        arguments = postgres_arrays.number_arrays(
            series=self._series,
            minute=map(minute_of, at),
            at=at,
            good=good,
            total=total,
            began=began,
            more_good=more_good,
            more=more,
        )
        execute(_WRITE, {**arguments, "is_noted": is_noted})
