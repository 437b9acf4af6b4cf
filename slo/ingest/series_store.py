"""Store of sample series: one for each boot of a source of an SLI."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from controlplane.core.sql import fetch_all
from slo.arithmetic.boots import Boot
from slo.arithmetic.increments import Sample, minute_of
from slo.counters import postgres_arrays

from .samples import SourceKey

THIN_ABOVE = 60
"""Number of samples of a series and minute above which :func:`thin_samples` drops some."""

_MICROS = "(extract(epoch FROM {}) * 1000000)::bigint"
_MOMENT = "to_timestamp({}::float8 / 1000000)"
_SERIES = f"""
    SELECT s.sli_id, s.source, s.boot, s.id, {_MICROS.format("s.started_at")},
           {_MICROS.format("s.first_at")}, {_MICROS.format("s.counted_from")},
           {_MICROS.format("s.at")}, s.good, s.total
    FROM unnest(%(slis)s::bigint[], %(sources)s::text[]) AS target (sli, source)
    JOIN slo_series s ON s.sli_id = target.sli AND s.source = target.source
"""  # noqa: S608
# The minutes of the range, the one before and the one after.
_NEAR = """
    SELECT target.series, near.minute, near.at, near.good, near.total
    FROM json_to_recordset(%s::json) AS target (series bigint, low int, high int)
    CROSS JOIN LATERAL (
        (SELECT minute, at, good, total FROM slo_sample
         WHERE series_id = target.series AND minute < target.low ORDER BY minute DESC LIMIT 1)
        UNION ALL
        (SELECT minute, at, good, total FROM slo_sample
         WHERE series_id = target.series AND minute BETWEEN target.low AND target.high)
        UNION ALL
        (SELECT minute, at, good, total FROM slo_sample
         WHERE series_id = target.series AND minute > target.high ORDER BY minute LIMIT 1)
    ) near ORDER BY target.series, near.minute
"""
_COLUMNS = "started bigint, first bigint, counted bigint, at bigint, good float8, total float8"
_SET = f"""
    {_MOMENT.format("new.started")}, {_MOMENT.format("new.first")},
    {_MOMENT.format("new.counted")}, {_MOMENT.format("new.at")}, new.good, new.total
"""
_INSERT = f"""
    INSERT INTO slo_series
        (sli_id, source, boot, started_at, first_at, counted_from, at, good, total)
    SELECT new.sli, new.source, new.boot, {_SET}
    FROM json_to_recordset(%s::json) AS new (sli bigint, source text, boot text, {_COLUMNS})
    RETURNING id, sli_id, source, boot
"""  # noqa: S608
_UPDATE = f"""
    UPDATE slo_series s
    SET (started_at, first_at, counted_from, at, good, total) = ROW ({_SET})
    FROM json_to_recordset(%s::json) AS new (series bigint, {_COLUMNS})
    WHERE s.id = new.series
"""  # noqa: S608
# In a minute with very many samples, the last one is replaced if that loses nothing: if counters
# only grew from the sample before it to the one after it.
MERGE_SAMPLES = f"""
    ON CONFLICT (series_id, minute) DO UPDATE SET (at, good, total) = (
        SELECT s.at[:kept] || excluded.at, s.good[:kept] || excluded.good,
               s.total[:kept] || excluded.total
        FROM (SELECT n - (CASE WHEN n >= {THIN_ABOVE}
            AND s.good[n - 1] <= s.good[n] AND s.good[n] <= excluded.good[1]
            AND s.total[n - 1] <= s.total[n] AND s.total[n] <= excluded.total[1]
            AND s.total[n - 1] - s.good[n - 1] <= s.total[n] - s.good[n]
            AND s.total[n] - s.good[n] <= excluded.total[1] - excluded.good[1]
            THEN 1 ELSE 0 END) AS kept FROM (SELECT cardinality(s.at) AS n) sizes) room)
"""  # noqa: S608
_INSERT_SAMPLES = """
    INSERT INTO slo_sample AS s (series_id, minute, at, good, total)
    SELECT new.* FROM json_to_recordset(%s::json)
         AS new (series bigint, minute int, at bigint[], good float8[], total float8[])
"""
_APPEND = _INSERT_SAMPLES + MERGE_SAMPLES
_REPLACE = f"""
    {_INSERT_SAMPLES}
    ON CONFLICT (series_id, minute) DO UPDATE
    SET at = excluded.at, good = excluded.good, total = excluded.total
"""  # noqa: S608


class StoredSeries(NamedTuple):
    """A stored sample series, with its last sample (`head`); times are microseconds since 1970."""

    id: int
    started: int | None
    first: int
    counted_from: int | None
    head: Sample

    def begins_later_than(self, started: int) -> bool:
        """Return True if the boot's stored start time is later than `started`, or unknown."""
        return self.started is None or started < self.started

    def boot(self, samples: list[Sample]) -> Boot:
        return Boot(samples, self.first, self.counted_from, self.started)


def load_series(keys: Collection[SourceKey]) -> dict[SourceKey, dict[str, StoredSeries]]:
    """Return, for each source (an SLI's instance that pushes counters), its stored series by boot.

    A boot is one run of the instance's process.
    """
    found: dict[SourceKey, dict[str, StoredSeries]] = {}
    arguments = {
        "slis": postgres_arrays.number_array(sli for sli, _ in keys),
        "sources": postgres_arrays.text_array(source for _, source in keys),
    }
    for sli, source, boot, pk, started, first, counted, *head in fetch_all(_SERIES, arguments):
        known = StoredSeries(pk, started, first, counted, Sample(*head))
        found.setdefault((sli, source), {})[boot] = known
    return found


def load_around(needed: Iterable[tuple[StoredSeries, int, int]]) -> dict[int, list[Sample]]:
    """Return the stored samples in and next to a range of minutes of each series, by series id.

    `needed` has each series with the first and last minute of its range. The nearest earlier and
    later minutes with samples are included. A series without any gets its last sample, `head`.
    """
    spans = {known.id: (known, low, high) for known, low, high in needed}
    rows = [{"series": pk, "low": low, "high": high} for pk, (_, low, high) in spans.items()]
    found: dict[int, list[Sample]] = {}
    for pk, _minute, at, good, total in postgres_arrays.execute_rows(_NEAR, rows):
        found.setdefault(pk, []).extend(map(Sample, at, good, total))
    return {pk: found.get(pk, [known.head]) for pk, (known, _, _) in spans.items()}


def save_series(
    new: Sequence[tuple[SourceKey, str, Boot, Sample]], changed: Sequence[tuple[int, Boot, Sample]]
) -> dict[tuple[SourceKey, str], int]:
    """Insert `new` series and update `changed` ones, with their boot and last sample.

    Return the ids of the new series by source and boot.
    """
    rows = [
        {"sli": sli, "source": source, "boot": name, **_series_columns(boot, head)}
        for (sli, source), name, boot, head in new
    ]
    inserted = postgres_arrays.execute_rows(_INSERT, rows)
    rows = [{"series": pk, **_series_columns(boot, head)} for pk, boot, head in changed]
    postgres_arrays.execute_rows(_UPDATE, rows)
    return {((sli, source), boot): pk for pk, sli, source, boot in inserted}


def save_samples(
    appended: Mapping[int, Sequence[Sample]], replaced: Mapping[int, Sequence[Sample]]
) -> None:
    """Write samples by series id: append `appended`; for `replaced`, overwrite their minutes."""
    for statement, series in ((_APPEND, appended), (_REPLACE, replaced)):
        rows = [row for pk, samples in series.items() for row in _sample_rows(pk, samples)]
        postgres_arrays.execute_rows(statement, rows)


def _sample_rows(series: int, samples: Iterable[Sample]) -> Iterable[dict[str, Any]]:
    minutes: dict[int, list[Sample]] = {}
    for sample in samples:
        minutes.setdefault(minute_of(sample.at), []).append(sample)
    for minute, some in minutes.items():
        at, good, total = map(list, zip(*thin_samples(some), strict=True))
        yield {"series": series, "minute": minute, "at": at, "good": good, "total": total}


def thin_samples(samples: list[Sample]) -> list[Sample]:
    """Drop samples of a minute until about `THIN_ABOVE` are left, without loss of counts.

    A sample can be dropped if counters only grew from the sample before it to the one after it.
    """
    if len(samples) <= THIN_ABOVE:
        return samples
    kept = samples[:THIN_ABOVE]
    for sample in samples[THIN_ABOVE:]:
        if _is_monotonic(kept[-2], kept[-1]) and _is_monotonic(kept[-1], sample):
            kept.pop()
        kept.append(sample)
    return kept


def _is_monotonic(one: Sample, other: Sample) -> bool:
    return 0 <= other.good - one.good <= other.total - one.total


def _series_columns(boot: Boot, head: Sample) -> dict[str, Any]:
    return {
        "started": boot.started,
        "first": boot.first,
        "counted": boot.counted_from,
        **head._asdict(),
    }
