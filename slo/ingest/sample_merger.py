"""Merging of samples into what is stored of their source: after it, or in between."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from slo.arithmetic.boots import Boot, MergeResult, merge_samples
from slo.arithmetic.increments import Increment, Sample, minute_of

from . import series_store
from .deferred_updates import CounterUpdate
from .gate_events import SourceIncrement
from .samples import BootSample, SourceKey
from .series_store import StoredSeries


@dataclass
class _NewSamples:
    """The new samples of one source by boot, and the start times that boots reported."""

    boots: dict[str, list[Sample]] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)


class SampleMerger:
    """Merges samples, source by source, and writes the outcome at the end."""

    def __init__(
        self, update: CounterUpdate, stored: Mapping[SourceKey, Mapping[str, StoredSeries]]
    ) -> None:
        self._update = update
        self._stored = stored
        self._late: dict[SourceKey, _NewSamples] = {}
        self._created: list[tuple[SourceKey, str, Boot, Sample]] = []
        self._changed: list[tuple[int, Boot, Sample]] = []
        self._appended: dict[int, list[Sample]] = {}
        self._replaced: dict[int, list[Sample]] = {}
        self._first: dict[tuple[SourceKey, str], list[Sample]] = {}
        self.grown: list[SourceIncrement] = []
        self.new_counts: dict[SourceKey, int] = {}

    def add(self, key: SourceKey, samples: Iterable[BootSample]) -> None:
        """Merge the samples of a source: now if they are the newest, else in :meth:`finish`."""
        new = _by_boot(samples)
        stored = self._stored.get(key, {})
        if _is_newest(new, stored):
            boots = {name: series.boot([series.head]) for name, series in stored.items()}
            self._merge(key, boots, new, is_whole=False)
        else:
            self._late[key] = new

    def finish(self) -> None:
        """Merge the late samples, and write the changed series."""
        for key, boots in self._load_around().items():
            self._merge(key, boots, self._late[key], is_whole=True)
        ids = series_store.save_series(self._created, self._changed)
        for names, samples in self._first.items():
            self._appended[ids[names]] = samples
        series_store.save_samples(self._appended, self._replaced)

    def _load_around(self) -> dict[SourceKey, dict[str, Boot]]:
        """Return the boots of each source with late samples, with the stored samples around."""
        wanted: list[tuple[StoredSeries, int, int]] = []
        for key, new in self._late.items():
            stored = self._stored.get(key, {})
            times = [sample.at for samples in new.boots.values() for sample in samples]
            # A boot that reports an earlier start may count from another time now.
            times += [one.first for name, one in stored.items() if _begins_earlier(name, one, new)]
            low, high = minute_of(min(times)), minute_of(max(times))
            wanted += [(one, low, high) for one in stored.values()]
        found = series_store.load_around(wanted) if wanted else {}
        return {
            key: {name: one.boot(found[one.id]) for name, one in self._stored.get(key, {}).items()}
            for key in self._late
        }

    def _merge(
        self, key: SourceKey, boots: Mapping[str, Boot], new: _NewSamples, *, is_whole: bool
    ) -> None:
        """Merge the samples of a source.

        With `is_whole`, `boots` have all stored samples of the minutes in question.
        """
        merged = merge_samples(boots, new.boots, new.started)
        self._update.add(key[0], merged)
        self.grown += ((key, step) for step in net_increments(merged))
        self.new_counts[key] = sum(map(len, merged.new.values()))
        for name, boot in merged.boots.items():
            samples = merged.new.get(name, [])
            series = self._stored.get(key, {}).get(name)
            if series is None:
                self._created.append((key, name, boot, samples[-1]))
                self._first[key, name] = samples
            elif samples or boot != series.boot(boot.samples):
                is_last = bool(samples) and samples[-1].at >= series.head.at
                self._changed.append((series.id, boot, samples[-1] if is_last else series.head))
                self._plan_samples(series, boot, samples, is_whole=is_whole)

    def _plan_samples(
        self, series: StoredSeries, boot: Boot, samples: Sequence[Sample], *, is_whole: bool
    ) -> None:
        if not samples:
            return
        if not is_whole:
            self._appended[series.id] = [*samples]
            return
        minutes = {minute_of(sample.at) for sample in samples}
        whole = [sample for sample in boot.samples if minute_of(sample.at) in minutes]
        self._replaced[series.id] = whole


def net_increments(merged: MergeResult) -> list[Increment]:
    """Return what a merge adds to the events counted before.

    That is nothing if events were only moved to another minute, else one increment with the
    difference.
    """
    if not merged.removed:
        return [step for step in merged.added if step.total]
    good = sum(s.good for s in merged.added) - sum(s.good for s in merged.removed)
    total = sum(s.total for s in merged.added) - sum(s.total for s in merged.removed)
    if not 0 <= good <= total or not total:
        return []
    began = min(step.began for step in merged.added)
    return [Increment(began, max(step.ended for step in merged.added), good, total)]


def _by_boot(samples: Iterable[BootSample]) -> _NewSamples:
    new = _NewSamples()
    for boot, sample, started in samples:
        new.boots.setdefault(boot, []).append(sample)
        if started is not None:
            new.started[boot] = min(new.started.get(boot, started), started)
    return new


def _begins_earlier(name: str, series: StoredSeries, new: _NewSamples) -> bool:
    started = new.started.get(name)
    return started is not None and series.begins_later_than(started)


def _is_newest(new: _NewSamples, stored: Mapping[str, StoredSeries]) -> bool:
    """Return whether every sample came after all stored ones, so that none goes in between."""
    if any(_begins_earlier(name, series, new) for name, series in stored.items()):
        return False
    newest = max((series.head.at for series in stored.values()), default=-1)
    return all(sample.at > newest for samples in new.boots.values() for sample in samples)
